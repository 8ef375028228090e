// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/access.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/zookeeper/acquire_machine.hpp>
#include <holdfast/zookeeper/judge.hpp>
#include <holdfast/zookeeper/node_name.hpp>
#include <holdfast/zookeeper/queued_recipe.hpp>
#include <holdfast/zookeeper/requests.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// Takes a lock by a place in its queue: an ephemeral node to whose name the server adds a number. `judge` says from
/// the list of these nodes whether ours has the lock, or which one it waits for.
///
/// The states are those of `queued_recipe`, after which it judges the list, and:
///
/// | state | sent | answer → next |
/// |---|---|---|
/// | tied | data of those with our sequence that conflict | judge by czxid; granted without one that is gone → listing |
/// | watching | data of the one before, with watch | gone → listing; there → waiting |
/// | waiting | – | the notice → listing |
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
/// After the end of the session all begins again.
/// Source: the lock and shared lock recipes of ZooKeeper's documentation.
class sequential_recipe final : public queued_recipe {
public:
    sequential_recipe(acquire_plan plan, naming as, access mode = access::sole)
        : queued_recipe{std::move(plan)}, naming_{as}, mode_{mode}
    {
    }

private:
    static constexpr std::size_t most_at_once = 1'000;

    [[nodiscard]] std::string prefix() const override { return node_prefix(naming_, id_, mode_); }

    void take_more(unsigned slot, reply const& r) override
    {
        if (state_ == state::tied) return take_tied(slot, r);
        // mutant: watch set without a second look
        if (state_ == state::watching) return r.what == answer::ok ? wait() : list();
    }

    void take_children(reply const& r) override
    {
        line_ = contenders_among(r.children);
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
        if (gone && judge(line_, node_).what == verdict::kind::granted) return list();
        look_for_place();
    }

    void wait_for(std::string const& before)
    {
        if (plan().once) return fail(make_error_code(holdfast::errc::timed_out));
        enter(state::watching);
        send(first, {request::kind::watch, plan().lock + '/' + before});
    }

    naming naming_;
    access mode_;
    std::vector<contender> line_;
    std::vector<std::size_t> tied_;  // their places in the line
    std::size_t asked_ = 0;          // how many tied nodes were asked for in earlier rounds
    std::size_t open_ = 0;           // how many in this round are not answered
};

}  // namespace holdfast::zookeeper
