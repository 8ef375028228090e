// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/token.hpp>
#include <holdfast/zookeeper/acquire_machine.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// The nodes of a session that stand for leases, by their owner tokens. A node lives as long as the session. A lease
/// ends if it is not extended: then its node must go.
class held_nodes {
public:
    struct node {
        leftover what;
        boot_clock::time_point ends;
        std::uint64_t token = 0;  ///< the first fencing token of the lease
    };

    void add(owner_token const& token, node one) { nodes_.insert_or_assign(std::string{token.view()}, std::move(one)); }

    /// Returns: the node of `token`; null if it has none.
    [[nodiscard]] node* find(owner_token const& token)
    {
        auto const found = nodes_.find(token.view());
        return found == nodes_.end() ? nullptr : &found->second;
    }

    /// Effects: forgets the node of `token`.
    void forget(owner_token const& token)
    {
        if (auto const found = nodes_.find(token.view()); found != nodes_.end()) nodes_.erase(found);
    }

    /// Effects: calls `f` with each node whose lease ended by `now`, and then forgets the node. If `f` throws, that
    /// node and those after it are kept.
    void hand_over_ended(boot_clock::time_point now, auto const& f)
    {
        for (auto one = nodes_.begin(); one != nodes_.end();) {
            auto const next = std::next(one);
            if (one->second.ends <= now) {
                f(std::as_const(one->second.what));
                nodes_.erase(one);
            }
            one = next;
        }
    }

    /// Returns: when the next lease ends if it is not extended.
    [[nodiscard]] boot_clock::time_point next_end() const noexcept
    {
        auto next = boot_clock::time_point::max();
        for (auto const& one : nodes_) next = std::min(next, one.second.ends);
        return next;
    }

    [[nodiscard]] bool empty() const noexcept { return nodes_.empty(); }
    void clear() noexcept { nodes_.clear(); }

private:
    std::map<std::string, node, std::less<>> nodes_;
};

}  // namespace holdfast::zookeeper
