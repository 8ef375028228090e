// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/token.hpp>
#include <holdfast/zookeeper/acquire_machine.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// The nodes of a session that stand for leases, by their owner tokens. A node lives as long as the session. A lease
/// ends if it is not extended: then its node must go.
///
/// Counts the bytes of their paths, and of those of all other nodes that end with the session: that are being made or
/// removed, or mark a semaphore. The servers remove all in one step when the session ends. If that has more than
/// `jute.maxbuffer`, they cannot read what they have written. Source: ZooKeeper's issue 4306.
class held_nodes {
public:
    /// The most bytes: three quarters of the usual `jute.maxbuffer`.
    static constexpr std::size_t most_bytes = 768UL * 1'024;

    struct node {
        leftover what;
        boot_clock::time_point ends;
        std::uint64_t token = 0;  ///< the first fencing token of the lease
        std::chrono::milliseconds stop_margin{};
    };

    /// Returns: the bytes of the node `what`.
    [[nodiscard]] static std::size_t bytes_of(leftover const& what) noexcept
    {
        return size_of(what.lock) + what.prefix.size() + 1;
    }

    void add(owner_token const& token, node&& one)
    {
        forget(token);
        auto const bytes = bytes_of(one.what);
        nodes_.try_emplace(std::string{token.view()}, std::move(one));
        bytes_ += bytes;
    }

    /// Effects: a node is about to be made at `path`, or at one that begins with it. `making`, of the operation that
    /// makes it, is set to its bytes until `unreserve`. Returns: false if there would be too many; then nothing
    /// changes.
    [[nodiscard]] bool reserve(std::size_t& making, std::string_view path) noexcept
    {
        auto const others = bytes_ - making;
        if (others + size_of(path) > most_bytes) return false;
        making = size_of(path);
        bytes_ = others + making;
        return true;
    }
    /// Effects: the same for `bytes` of a node that is there: they count, however many there are.
    void count(std::size_t& making, std::size_t bytes) noexcept
    {
        making += bytes;
        bytes_ += bytes;
    }
    /// Effects: `making` does not count any more: there is no such node, or it was added.
    void unreserve(std::size_t& making) noexcept { bytes_ -= std::exchange(making, 0); }

    /// Returns: the node of `token`; null if it has none.
    [[nodiscard]] node* find(owner_token const& token)
    {
        auto const found = nodes_.find(token.view());
        return found == nodes_.end() ? nullptr : &found->second;
    }

    /// Effects: forgets the node of `token`.
    void forget(owner_token const& token)
    {
        if (auto const found = nodes_.find(token.view()); found != nodes_.end()) erase(found);
    }

    /// Effects: calls `f` with each node whose lease ended by `now`, and then forgets the node. If `f` throws, that
    /// node and those after it are kept.
    void hand_over_ended(boot_clock::time_point now, auto const& f)
    {
        for (auto one = nodes_.begin(); one != nodes_.end();) {
            auto const next = std::next(one);
            if (one->second.ends <= now) {
                f(std::as_const(one->second.what));
                erase(one);
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
    void clear() noexcept
    {
        while (!nodes_.empty()) erase(nodes_.begin());
    }

private:
    using node_map = std::map<std::string, node, std::less<>>;

    /// As the servers write it, with the number at the end of a sequential one.
    [[nodiscard]] static std::size_t size_of(std::string_view path) noexcept { return path.size() + 10 + 4; }

    void erase(node_map::iterator one) noexcept
    {
        bytes_ -= bytes_of(one->second.what);
        nodes_.erase(one);
    }

    node_map nodes_;
    std::size_t bytes_ = 0;
};

}  // namespace holdfast::zookeeper
