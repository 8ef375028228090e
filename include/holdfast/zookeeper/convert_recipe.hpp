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
/// | creating | create, children | made, children → judge; create lost → searching; children lost → listing |
/// | searching | confirm, data of the node | there → listing; not there → creating |
/// | listing | children | → judge |
/// | tied | data of the first that waits | there → granted; gone → listing |
///
/// judge:
///
/// | nodes of the lock | next |
/// |---|---|
/// | without the first node | failed (`timed_out`) |
/// | to a writer: another reader may have the lock | failed (`timed_out`) |
/// | to a writer: others wait | tied |
/// | otherwise | granted |
///
/// Its number is the first node's: the hold keeps its place before those that wait. The two nodes are made and removed
/// one by one: if an answer stays away, the hold is as it was. Why no other gets in between: docs/proofs.md, "A queue
/// on ZooKeeper".
///
/// The fencing token must be greater than those of all that have had the lock, and less than those of all that wait:
///
/// | to a | others | token |
/// |---|---|---|
/// | reader | | the writer's, and one more |
/// | writer | none waits | this node's |
/// | writer | the first that waits was made before | the last that is surely free before its own: of the readers that had the lock meanwhile, each has the first of its node |
class convert_recipe final : public acquire_machine {
public:
    /// `held` is what the hold would leave, and `token` its fencing token. Requires: the hold's node is known.
    convert_recipe(acquire_plan plan, naming as, access to, leftover held, std::uint64_t token)
        : acquire_machine{std::move(plan)}, naming_{as}, to_{to}, held_{std::move(held)}, last_token_{token}
    {
    }

    [[nodiscard]] leftover what_is_left() const override
    {
        return {plan().lock, name(), made_ ? path() : std::string{}, made_ ? czxid_ : 0, {}, session(), {}};
    }

    [[nodiscard]] std::uint64_t first_token() const noexcept override
    {
        // mutant: the token of a converted hold is its own node's
        if (to_ == access::shared) return last_token_ + 1;
        return first_waits_ == 0 ? first_token_of(czxid_) : std::max(last_token_, first_token_of(first_waits_ - 1)) + 1;
    }

private:
    [[nodiscard]] std::string name() const
    {
        // The last number is given out again and again. The one before it was given out once, and that node is gone.
        auto const number = std::min(sequence_of(leaf_of(held_.node)).value_or(0), exhausted_sequence - 1);
        // mutant: a hold converted at the end of the line
        return converted_node(naming_, id_, to_, number);
    }
    [[nodiscard]] std::string path() const { return plan().lock + '/' + name(); }

    void start_over() override
    {
        if (session() != held_.session) return refuse();
        id_ = plan().tokens();  // a node of an earlier conversion may still have to be removed
        if (to_ == access::exclusive)
            ask_for_line(state::looking);
        else
            create();
    }

    void resume() override
    {
        if (in_doubt_)
            search();
        else if (made_)
            ask_for_line(state::listing);
        else if (state_ == state::looking)
            ask_for_line(state::looking);
        else
            create();
    }

    void create() override
    {
        enter(state::creating);  // mutant: a writer whose node goes before its reader's is there
        in_doubt_ = true;
        send(first, {request::kind::create_plain, path(), plan().content});
        send(second, {request::kind::children, plan().lock});
    }

    void search() { look_for({request::kind::data, path()}); }

    void take(unsigned slot, reply const& r) override
    {
        if (state_ == state::creating && slot == first) return take_created(r);
        switch (state_) {
        case state::searching: return take_found(r);
        case state::tied: return r.what == answer::ok ? take_first_waiting(r.stat.czxid) : ask_for_line(state::listing);
        default: return look_at_others(r);
        }
    }

    void take_created(reply const& r)
    {
        if (r.what != answer::ok) return refuse();  // the node above is gone, and so is ours
        have(r);                                    // mutant: a reader that becomes a writer without a second look
    }

    void take_found(reply const& r)
    {
        in_doubt_ = false;
        if (r.what != answer::ok) return create();
        have(r);
        ask_for_line(state::listing);
    }

    void look_at_others(reply const& r)
    {
        auto const line = contenders_among(r.children);
        bool still_there = false;
        bool others_hold = false;
        contender const* waits = nullptr;  // the first made by the server: its converted siblings never get the lock
        for (auto const& one : line) {
            if (one.name == leaf_of(held_.node))
                still_there = true;
            else if (one.name == name())
                continue;
            else if (one.mode == access::shared)
                others_hold = others_hold || one.converted || !waits || waits->sequence == one.sequence;
            // mutant: a converted node taken for one that waits
            else if (!waits && !one.converted)
                waits = &one;
        }
        if (!still_there) return refuse();  // mutant: a writer whose node goes before its reader's is there
        if (to_ == access::exclusive) {
            if (others_hold || (waits && waits->sequence == exhausted_sequence)) return refuse();
            if (state_ == state::looking) return create();
            // mutant: a writer whose token is greater than of those that waited before
            if (waits) return ask_about(waits->name);
        }
        grant();
    }

    void ask_about(std::string const& node)
    {
        enter(state::tied);
        send(first, {request::kind::data, plan().lock + '/' + node});
    }

    void take_first_waiting(std::int64_t czxid)
    {
        first_waits_ = czxid < czxid_ ? czxid : 0;
        // One more is for the reader that it may become.
        if (first_waits_ != 0 && first_token() + 1 >= first_token_of(first_waits_)) return refuse();
        grant();
    }

    void refuse() noexcept { fail(make_error_code(holdfast::errc::timed_out)); }

    naming naming_;
    access to_;
    leftover held_;
    std::uint64_t last_token_;
    std::int64_t first_waits_ = 0;  // the czxid of the first that waits, if it was made before this node
};

}  // namespace holdfast::zookeeper
