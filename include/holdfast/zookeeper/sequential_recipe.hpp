// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/access.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/zookeeper/acquire_machine.hpp>
#include <holdfast/zookeeper/judge.hpp>
#include <holdfast/zookeeper/node_name.hpp>
#include <holdfast/zookeeper/path.hpp>
#include <holdfast/zookeeper/requests.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// Takes a lock by a place in its queue: an ephemeral node to whose name the server adds a number. `judge` says from
/// the list of these nodes whether ours has the lock, or which one it waits for.
///
/// | state | sent | answer → next |
/// |---|---|---|
/// | looking | children | there, or no parent → creating; refused → failed, before anything is made |
/// | creating | create, children | made, children → judge; no parent → creating, with one more container before it; create lost → searching; children lost → listing |
/// | searching | confirm, children | a node with our GUID → checking; none → creating |
/// | checking | data of that node | made by us → judge; by another session → creating with a new GUID; gone → creating |
/// | listing | children | judge |
/// | tied | data of those with our sequence that conflict | judge by czxid; granted without one that is gone → listing |
/// | watching | data of the one before, with watch | gone → listing; there → waiting |
/// | waiting | – | the notice → listing |
///
/// It looks first if it is not known whether the list may be read. A client that may create but not read could not tell
/// its place, and perhaps could not remove its node.
///
/// judge:
///
/// | our node             | next |
/// |----------------------|------|
/// | is gone              | creating with a new GUID |
/// | has the lock         | granted |
/// | has to wait, `once`  | failed (`timed_out`) |
/// | has to wait          | watching the one that it waits for |
/// | has an exhausted sequence, as others do | tied |
///
/// A node that is gone may have been replaced by one that is not in the list: see `convert_recipe`.
///
/// A lost answer is asked for again once connected. After the end of the session all begins again. Source: the lock and
/// shared lock recipes of ZooKeeper's documentation; "protection" as in Curator.
class sequential_recipe final : public acquire_machine {
public:
    sequential_recipe(acquire_plan plan, naming as, access mode = access::sole)
        : acquire_machine{std::move(plan)}, naming_{as}, mode_{mode}
    {
    }

    [[nodiscard]] std::string node_path() const { return plan().lock + '/' + node_; }

    [[nodiscard]] leftover what_is_left() const override
    {
        return {plan().lock, prefix(),          made_ ? node_path() : std::string{}, made_ ? czxid_ : 0, {},
                session(),   parents_.missing()};
    }

private:
    static constexpr std::size_t most_at_once = 1'000;

    [[nodiscard]] std::string prefix() const { return node_prefix(naming_, id_, mode_); }

    void start_over() override
    {
        id_ = plan().tokens();                 // mutant: ephemeralOwner not checked, the GUID kept in a new session
        if (plan().look_first && !may_read())  // mutant: a place taken without a look at the list
            ask_for_line(state::looking);
        else
            create();
    }

    void resume() override
    {
        if (made_)
            ask_for_line(state::listing);
        else if (in_doubt_)
            search();  // mutant: create repeated blindly
        else if (state_ == state::looking)
            ask_for_line(state::looking);
        else
            create();
    }

    void create() override
    {
        enter(state::creating);
        made_ = false;
        in_doubt_ = true;
        send_create({request::kind::create_sequential, plan().lock + '/' + prefix(), plan().content});
        send(second, {request::kind::children, plan().lock});
    }

    void search()
    {
        enter(state::searching);
        send(first, {request::kind::confirm});  // mutant: a lost node looked for without a barrier
        send(second, {request::kind::children, plan().lock});
    }

    void take(unsigned slot, reply const& r) override
    {
        if (state_ == state::creating && slot == first) return take_created(r);
        if (state_ == state::creating && slot >= first_parent) return parents_.answered(slot - first_parent, r);
        if (r.undecided()) return stall();
        if (r.what == answer::refused) return fail(r.code);
        switch (state_) {
        case state::looking: return r.what == answer::ok ? take_look() : make_parent(plan().lock);
        case state::creating:
        case state::listing: return take_children(r);
        case state::searching: return take_found(r);
        case state::checking: return take_checked(r);
        case state::tied: return take_tied(slot, r);
        // mutant: watch set without a second look
        case state::watching: return r.what == answer::ok ? enter_waiting() : ask_for_line(state::listing);
        default: return;
        }
    }

    void take_created(reply const& r)
    {
        in_doubt_ = r.what == answer::lost;
        if (r.what == answer::ok) {
            made_ = true;
            node_ = leaf_of(r.text);
            czxid_ = r.stat.czxid;
            parents_.forget();
        } else if (r.what == answer::no_node) {
            make_parent(plan().lock);
        } else if (r.what == answer::refused) {
            fail(r.code);
        } else {
            next_round();
            stall();
        }
    }

    void take_look()
    {
        know_list();
        create();
    }

    void take_children(reply const& r)
    {
        know_list();
        line_ = contenders_among(r.children);
        look_for_place();
    }

    void take_found(reply const& r)
    {
        line_ = contenders_among(r.children);
        auto const found = std::find_if(line_.begin(), line_.end(),
                                        [ours = prefix()](contender const& one) { return one.name.starts_with(ours); });
        if (found == line_.end()) return create();
        node_ = found->name;
        enter(state::checking);
        send(first, {request::kind::data, node_path()});
    }

    void take_checked(reply const& r)
    {
        in_doubt_ = false;
        if (r.what != answer::ok) return create();
        if (r.stat.owner != session()) return start_over();  // mutant: ephemeralOwner not checked
        made_ = true;
        czxid_ = r.stat.czxid;
        parents_.forget();
        look_for_place();
    }

    void look_for_place()
    {
        for (auto& one : line_)
            if (one.name == node_) one.czxid = czxid_;
        auto next = judge(line_, node_);
        switch (next.what) {
        case verdict::kind::gone: return start_over();
        case verdict::kind::granted: return grant();
        case verdict::kind::waits: return wait_for(next.watch);
        case verdict::kind::tied: break;
        }
        tied_ = std::move(next.tied);
        asked_ = 0;
        ask_tied();
    }

    /// Effects: asks for some of the tied nodes, however many there are: a round has a tag for each of them.
    void ask_tied()
    {
        enter(state::tied);
        open_ = std::min(tied_.size() - asked_, most_at_once);
        for (unsigned i = 0; i < open_; ++i)
            send(i, {request::kind::data, plan().lock + '/' + line_[tied_[asked_ + i]].name});
    }

    void take_tied(unsigned slot, reply const& r)
    {
        auto& one = line_[tied_.at(asked_ + slot)];
        if (r.what == answer::ok)
            one.czxid = r.stat.czxid;
        else
            one.name.clear();  // it is gone
        if (--open_ > 0) return;
        asked_ = std::min(tied_.size(), asked_ + most_at_once);
        if (asked_ < tied_.size()) return ask_tied();
        bool const gone = std::erase_if(line_, [](contender const& each) { return each.name.empty(); }) > 0;
        // mutant: granted without a node that was replaced
        if (gone && judge(line_, node_).what == verdict::kind::granted) return ask_for_line(state::listing);
        look_for_place();
    }

    void wait_for(std::string const& before)
    {
        if (plan().once) return fail(make_error_code(holdfast::errc::timed_out));
        enter(state::watching);
        send(first, {request::kind::watch, plan().lock + '/' + before});
    }

    void look_again() override
    {
        ask_for_line(state::listing);  // mutant: first once the one before is gone
    }

    void enter_waiting() { state_ = state::waiting; }  // in the same round: the notice has its tag

    naming naming_;
    access mode_;
    std::string node_;  // mutant: ephemeralOwner not checked
    std::vector<contender> line_;
    std::vector<std::size_t> tied_;  // their places in the line
    std::size_t asked_ = 0;          // how many tied nodes were asked for in earlier rounds
    std::size_t open_ = 0;           // how many in this round are not answered
};

}  // namespace holdfast::zookeeper
