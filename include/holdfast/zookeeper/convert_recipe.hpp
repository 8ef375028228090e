// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/access.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/zookeeper/acquire_machine.hpp>
#include <holdfast/zookeeper/node_name.hpp>
#include <holdfast/zookeeper/path.hpp>
#include <holdfast/zookeeper/requests.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// Makes a writer's hold a reader's, or tries the reverse: makes a second node in the place of the first one. The
/// caller removes the first node when this one has been granted, and this one after a failure.
///
/// | state | sent | answer → next |
/// |---|---|---|
/// | looking (to a writer) | children | → judge, then creating |
/// | creating | create, children | made, children → judge, then granted; create lost → searching; children lost → listing |
/// | searching | confirm, data of the node | there → listing; not there → creating |
/// | listing | children | → judge, then granted |
///
/// judge:
///
/// | nodes of the lock | next |
/// |---|---|
/// | without the first node | failed (`timed_out`) |
/// | to a writer: with others than these two | failed (`timed_out`) |
///
/// Its number is the first node's, so the hold keeps its place before those that wait, and there is never a moment
/// without a node in that place. A node that the server numbered anew would stand after them: the next writer would get
/// in beside the reader.
///
/// To a writer: a reader that was made before this node is in the list that comes after it, so this fails. One that is
/// made later finds this node before its own, and waits. Two that try at the same time find each other: at least one
/// fails. It also fails if others wait: they were there before this writer, and have a smaller fencing token.
///
/// The nodes are made and removed one by one, not in one transaction: if an answer stays away, the hold is as it was,
/// and what may have been made is removed. A transaction would leave open what is held.
class convert_recipe final : public acquire_machine {
public:
    /// `held` is what the hold would leave. Requires: its node is known.
    convert_recipe(acquire_plan plan, naming as, access to, leftover held)
        : acquire_machine{std::move(plan)}, naming_{as}, to_{to}, held_{std::move(held)}
    {
    }

    [[nodiscard]] leftover what_is_left() const override
    {
        return {plan().lock, name(), made_ ? path() : std::string{}, made_ ? czxid_ : 0, {}, session(), {}};
    }

    /// Of a reader it is the last of the writer's node: those that wait have greater ones, but this node is younger.
    [[nodiscard]] std::uint64_t first_token() const noexcept override
    {
        // mutant: the token of a reader that was a writer is its own node's
        if (to_ == access::shared) return first_token_of(held_.czxid) + tokens_of_a_writer;
        return first_token_of(czxid_);
    }

private:
    [[nodiscard]] std::string name() const
    {
        // No other client has this number: it was given out before the last one, and only a hold without another node
        // before it is converted. The last one is given out again and again.
        auto const number = std::min(sequence_of(leaf_of(held_.node)).value_or(0), exhausted_sequence - 1);
        auto const digits = std::to_string(number);  // mutant: a hold converted at the end of the line
        return node_prefix(naming_, id_, to_) + std::string(10 - digits.size(), '0') + digits;
    }
    [[nodiscard]] std::string path() const { return plan().lock + '/' + name(); }

    void start_over() override
    {
        if (session() != held_.session) return fail(make_error_code(holdfast::errc::timed_out));
        id_ = plan().tokens();  // a node of an earlier conversion may still have to be removed
        if (to_ == access::exclusive)
            look();
        else
            create();
    }

    void resume() override
    {
        if (in_doubt_)
            search();
        else if (made_)
            list();
        else if (state_ == state::looking)
            look();
        else
            create();
    }

    void look()
    {
        enter(state::looking);
        send(second, {request::kind::children, plan().lock});
    }

    void create() override
    {
        enter(state::creating);
        in_doubt_ = true;
        send(first, {request::kind::create_plain, path(), plan().content});
        send(second, {request::kind::children, plan().lock});
    }

    void search()
    {
        enter(state::searching);
        send(first, {request::kind::confirm});
        send(second, {request::kind::data, path()});
    }

    void list()
    {
        enter(state::listing);
        send(second, {request::kind::children, plan().lock});
    }

    void take(unsigned slot, reply const& r) override
    {
        if (state_ == state::creating && slot == first) return take_created(r);
        if (r.undecided()) return stall();
        if (r.what == answer::refused) return fail(r.code);
        if (state_ == state::searching) return take_found(r);
        judge(r);
    }

    void take_created(reply const& r)
    {
        in_doubt_ = r.what == answer::lost;
        if (r.what == answer::ok) {
            made_ = true;
            czxid_ = r.stat.czxid;  // mutant: a reader that becomes a writer without a second look
        } else if (r.what == answer::refused) {
            fail(r.code);
        } else if (r.what == answer::no_node) {
            fail(make_error_code(holdfast::errc::timed_out));  // the node above is gone, and so is ours
        } else {
            next_round();
            stall();
        }
    }

    void take_found(reply const& r)
    {
        in_doubt_ = false;
        if (r.what != answer::ok) return create();
        made_ = true;
        czxid_ = r.stat.czxid;
        list();
    }

    void judge(reply const& r)
    {
        bool still_there = false;
        bool others = false;
        for (auto const& one : contenders_among(r.children)) {
            if (one.name == leaf_of(held_.node))
                still_there = true;
            else if (one.name != name())  // mutant: a reader that becomes a writer before those that wait
                others = true;
        }
        if (!still_there) return fail(make_error_code(holdfast::errc::timed_out));
        if (others && to_ == access::exclusive) return fail(make_error_code(holdfast::errc::timed_out));
        if (state_ == state::looking) return create();
        grant();
    }

    void look_again() override {}

    naming naming_;
    access to_;
    leftover held_;
};

}  // namespace holdfast::zookeeper
