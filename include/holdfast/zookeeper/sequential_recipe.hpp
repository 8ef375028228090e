// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/zookeeper/acquire_machine.hpp>
#include <holdfast/zookeeper/node_name.hpp>
#include <holdfast/zookeeper/path.hpp>
#include <holdfast/zookeeper/requests.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// Takes a lock by a place in its queue: an ephemeral node to whose name the server adds a number. The node with the
/// least number has the lock; every other client waits for the node before its own.
///
/// | state | sent | answer → next |
/// |---|---|---|
/// | looking | children | there, or no parent → creating; refused → failed, before anything is made |
/// | creating | create, children | made, children → judge; no parent → creating, with one more container before it; create lost → searching; children lost → listing |
/// | searching | confirm, children | a node with our GUID → checking; none → creating |
/// | checking | data of that node | made by us → judge; by another session → creating with a new GUID; gone → creating |
/// | listing | children | judge |
/// | tied | data of all with our sequence | judge by czxid |
/// | watching | data of the one before, with watch | gone → listing; there → waiting |
/// | waiting | – | the notice → listing |
///
/// It looks first if it is not known whether the list may be read. A client that may create but not read could not tell
/// its place, and perhaps could not remove its node.
///
/// judge:
///
/// | our node                 | next |
/// |--------------------------|------|
/// | is gone                  | creating with a new GUID |
/// | is the first             | granted |
/// | is not the first, `once` | failed (`timed_out`) |
/// | is not the first         | watching the one before it |
///
/// A lost answer is asked for again once connected. After the end of the session all begins again. A node that is first
/// stays first: a later one has a larger sequence or, if the sequence is exhausted, a larger czxid. Source: the lock
/// recipe of ZooKeeper's documentation; "protection" as in Curator.
class sequential_recipe final : public acquire_machine {
public:
    sequential_recipe(acquire_plan plan, naming as) : acquire_machine{std::move(plan)}, naming_{as} {}

    [[nodiscard]] std::string node_path() const { return plan().lock + '/' + node_; }

    [[nodiscard]] leftover what_is_left() const override
    {
        return {plan().lock, prefix(),          made_ ? node_path() : std::string{}, made_ ? czxid_ : 0, {},
                session(),   parents_.missing()};
    }

private:
    static constexpr std::size_t most_at_once = 1'000;

    [[nodiscard]] std::string prefix() const { return node_prefix(naming_, id_); }

    void start_over() override
    {
        id_ = plan().tokens();                 // mutant: ephemeralOwner not checked, the GUID kept in a new session
        if (plan().look_first && !may_read())  // mutant: a place taken without a look at the list
            look();
        else
            create();
    }

    void resume() override
    {
        if (made_)
            list();
        else if (in_doubt_)
            search();  // mutant: create repeated blindly
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

    void list()
    {
        enter(state::listing);
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
        case state::watching: return r.what == answer::ok ? enter_waiting() : list();
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
        judge();
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
        judge();
    }

    void judge()
    {
        auto const mine =
            std::find_if(line_.begin(), line_.end(), [&](contender const& one) { return one.name == node_; });
        if (mine == line_.end()) return start_over();
        auto const same = std::equal_range(line_.begin(), line_.end(), *mine,
                                           [](auto const& a, auto const& b) { return a.sequence < b.sequence; });
        auto const before = same.first == line_.begin() ? std::string{} : std::prev(same.first)->name;
        if (same.second - same.first == 1) return settle(before);
        tied_.clear();
        for (auto one = same.first; one != same.second; ++one)
            if (one != mine) tied_.push_back({one->name, 0});
        before_ties_ = before;
        asked_ = 0;
        ask_tied();
    }

    /// Effects: asks for some of the tied nodes, however many there are: a round has a tag for each of them.
    void ask_tied()
    {
        enter(state::tied);
        open_ = std::min(tied_.size() - asked_, most_at_once);
        for (unsigned i = 0; i < open_; ++i) send(i, {request::kind::data, plan().lock + '/' + tied_[asked_ + i].name});
    }

    void take_tied(unsigned slot, reply const& r)
    {
        tied_.at(asked_ + slot).czxid = r.what == answer::ok ? r.stat.czxid : 0;
        if (--open_ > 0) return;
        asked_ = std::min(tied_.size(), asked_ + most_at_once);
        if (asked_ < tied_.size()) return ask_tied();
        tie const* before = nullptr;
        for (auto const& one : tied_)
            // mutant: those of one sequence ordered by name
            if (one.czxid != 0 && one.czxid < czxid_ && (!before || one.czxid > before->czxid)) before = &one;
        settle(before ? before->name : before_ties_);
    }

    /// Effects: `before` is the node before ours; empty for none.
    void settle(std::string const& before)
    {
        if (before.empty()) return grant();
        if (plan().once) return fail(make_error_code(holdfast::errc::timed_out));
        enter(state::watching);
        send(first, {request::kind::watch, plan().lock + '/' + before});
    }

    void look_again() override
    {
        list();  // mutant: first once the one before is gone
    }

    void enter_waiting() { state_ = state::waiting; }  // in the same round: the notice has its tag

    struct tie {
        std::string name;
        std::int64_t czxid;
    };

    naming naming_;
    std::string node_;  // mutant: ephemeralOwner not checked
    std::vector<contender> line_;
    std::vector<tie> tied_;
    std::string before_ties_;
    std::size_t asked_ = 0;  // how many tied nodes were asked for in earlier rounds
    std::size_t open_ = 0;   // how many in this round are not answered
};

}  // namespace holdfast::zookeeper
