// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/clock.hpp>
#include <holdfast/core/token.hpp>
#include <holdfast/zookeeper/acquirer.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::zookeeper {

/// The nodes of a session that stand for leases, by their owner tokens. A node lives as long as the session; a lease ends when it is not
/// extended: then its node has to go.
class held_nodes {
public:
    struct node {
        remains what;
        boot_clock::time_point ends;
    };

    void add(owner_token const& token, node one) { nodes_.insert_or_assign(std::string{token.view()}, std::move(one)); }

    /// Returns: the node of `token`; null where it has none.
    [[nodiscard]] node* find(owner_token const& token)
    {
        auto const found = nodes_.find(token.view());
        return found == nodes_.end() ? nullptr : &found->second;
    }

    /// Effects: forgets the node of `token`. Returns: it; nothing where there is none.
    [[nodiscard]] std::optional<remains> take(owner_token const& token)
    {
        auto const found = nodes_.find(token.view());
        if (found == nodes_.end()) return std::nullopt;
        auto what = std::move(found->second.what);
        nodes_.erase(found);
        return what;
    }

    /// Effects: has `f` called with each node whose lease ended by `now`, and then forgets it; it keeps the one for which `f` throws, and
    /// those behind it.
    void hand_over_ended(boot_clock::time_point now, auto const& f)
    {
        for (auto one = nodes_.begin(); one != nodes_.end();) {
            if (one->second.ends > now) {
                ++one;
                continue;
            }
            f(std::as_const(one->second.what));
            one = nodes_.erase(one);
        }
    }

    /// Returns: when the next lease ends unless it is extended before.
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
