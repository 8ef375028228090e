// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/clock.hpp>
#include <holdfast/redis/commands.hpp>
#include <holdfast/redis/error.hpp>
#include <holdfast/redis/node_set.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <system_error>

namespace holdfast::redis {

/// Decides which nodes have a vote, and what fence missing counters begin with. No I/O, no clock: it is told what a connection learns
/// when it is made. A node that
///
/// | is known to                                                            | may vote |
/// |------------------------------------------------------------------------|----------|
/// | have no connection                                                     | no: `cannot_connect` |
/// | run for less than the guard: it may have forgotten what it granted     | no: `restarted_recently`, until the guard has passed |
/// | have a clock that cannot be compared, as too few others are known      | no: `clock_not_compared` |
/// | have a clock that no majority of the nodes is within half the guard of | no: `clock_out_of_line` |
/// | none of these                                                          | yes |
///
/// The guard is no shorter than the longest ttl in use, and the same for every client; 0: every node that is connected has a vote.
///
/// A majority that is near, and not the median of the clocks that happen to be known, because two majorities share a node: whatever
/// clocks each of two clients knows, no clock that votes for one is further than the guard from one that votes for the other. Why the
/// fences then increase: one that a node forgot was at most half a guard ahead of another voter's clock, as a proposal may be, and so a guard
/// and a half ahead of its own. It begins no lower than that after its start, the `floor`: when it has a vote again, the guard has passed, and that is
/// no more than half a guard ahead of its clock. That goes for a node that came back with an old snapshot, too.
class admission {
public:
    admission(unsigned nodes, boot_clock::duration guard) noexcept : nodes_{nodes}, guard_{guard} {}

    /// A connection was made. The node said that its clock stood at `server_time`, since 1970, and that it has run for at least `uptime`;
    /// its greeting has come by `now`, and was asked for no longer than `took` ago: its clock is known no better than that. A later look at
    /// a node replaces the earlier one.
    void connected(unsigned node, std::chrono::microseconds server_time, boot_clock::duration uptime, boot_clock::time_point now,
                   boot_clock::duration took = {}) noexcept
    {
        auto const doubt = std::chrono::ceil<microseconds>(took) / 2;
        seen_[node] = {.connected = true, .at = now, .ahead = server_time - since_boot(now) + doubt, .doubt = doubt, .started = now - uptime,
                       .born = server_time - std::chrono::duration_cast<microseconds>(uptime)};
        compare();
    }

    /// The connection was lost. What the node's clock says of the others' holds on.
    void disconnected(unsigned node) noexcept { seen_[node].connected = false; }

    /// Returns: no error, or why the grants of the node do not count now.
    [[nodiscard]] std::error_code may_vote(unsigned node, boot_clock::time_point now) const noexcept
    {
        auto const& seen = seen_[node];
        if (!seen.connected) return errc::cannot_connect;
        if (now - seen.started < guard_) return errc::restarted_recently;
        if (guard_ == boot_clock::duration::zero() || seen.near >= quorum(nodes_)) return {};
        return out_of_line(node) ? errc::clock_out_of_line : errc::clock_not_compared;
    }

    /// Returns: whether the clock of a node that is connected looks out of line.
    [[nodiscard]] bool out_of_line(unsigned node) const noexcept
    {
        auto const& seen = seen_[node];
        return guard_ != boot_clock::duration::zero() && seen.connected && seen.near + unknown_ < quorum(nodes_);
    }

    /// Returns: whether the node's clock was seen so long ago that it may have been set since.
    [[nodiscard]] bool outdated(unsigned node, boot_clock::time_point now) const noexcept { return now - seen_[node].at >= std::chrono::seconds{10}; }

    /// Returns: whether the node's clock looks out of line and is known only roughly, as its greeting took long: another look may show it in line.
    /// Two clocks that agree, and are known better than this, are never found apart.
    [[nodiscard]] bool vague(unsigned node) const noexcept
    {
        return out_of_line(node) && seen_[node].doubt > half_guard() / 4;
    }

    /// Returns: how long the restart guard still keeps the node from voting.
    [[nodiscard]] boot_clock::duration guarded_for(unsigned node, boot_clock::time_point now) const noexcept
    {
        return std::max(seen_[node].started + guard_ - now, boot_clock::duration::zero());
    }

    /// Returns: how long the node has run at least.
    [[nodiscard]] boot_clock::duration running_for(unsigned node, boot_clock::time_point now) const noexcept { return now - seen_[node].started; }

    /// Returns: whether the node will have a vote or not as soon as more clocks are known.
    [[nodiscard]] bool undecided(unsigned node, boot_clock::time_point now) const noexcept
    {
        return seen_[node].connected && may_vote(node, now) == errc::clock_not_compared;
    }

    /// Returns: the fence for missing counters to begin with, in µs since 1970: a lead ahead of every clock that is in line, so that the
    /// nodes answer alike, but no further than that a node which begins anew catches up; 0 where no clock is in line.
    [[nodiscard]] std::uint64_t proposal(boot_clock::time_point now) const noexcept
    {
        if (!fresh_) return 0;
        auto const fence = *fresh_ + since_boot(now);
        return fence.count() < 0 ? 0 : static_cast<std::uint64_t>(fence.count());
    }

    /// Returns: what a fence is at the least, in µs since 1970, that the node has written since it was started and has a vote. One below is
    /// from a snapshot, and as good as forgotten.
    [[nodiscard]] std::uint64_t floor(unsigned node) const noexcept
    {
        auto const f = seen_[node].born + std::chrono::duration_cast<microseconds>(guard_) * 3 / 2;
        return f.count() < 1 ? 1 : static_cast<std::uint64_t>(f.count());
    }

    /// Returns: how long a counter is kept after its last use: when it is forgotten, clocks that were behind it, by no more than a guard and a half,
    /// have caught up.
    [[nodiscard]] std::chrono::milliseconds fence_lifetime() const noexcept
    {
        return std::max(shortest_fence_lifetime, 2 * std::chrono::ceil<std::chrono::milliseconds>(guard_));
    }

    /// Returns: how far ahead of its own clock a node may let a counter begin.
    [[nodiscard]] std::chrono::microseconds max_lead() const noexcept { return half_guard(); }

    /// Returns: how long a server has run at the least that reports `uptime_in_seconds` in `INFO server`. It subtracts whole seconds of
    /// its clock, and so may report one too many.
    [[nodiscard]] static constexpr std::chrono::seconds certain_uptime(std::chrono::seconds reported) noexcept
    {
        return std::max(reported - std::chrono::seconds{1}, std::chrono::seconds{0});
    }

private:
    using microseconds = std::chrono::microseconds;

    struct sight {
        bool connected = false;
        boot_clock::time_point at{};            ///< when it was seen
        std::optional<microseconds> ahead{};   ///< the server's clock less ours
        microseconds doubt{};                   ///< by how much that may be wrong
        boot_clock::time_point started{};       ///< at the latest
        microseconds born{};                    ///< the same on the server's clock, since 1970
        unsigned near = 0;                      ///< how many clocks, its own among them, are within half the guard
    };

    [[nodiscard]] static microseconds since_boot(boot_clock::time_point now) noexcept
    {
        return std::chrono::duration_cast<microseconds>(now.time_since_epoch());
    }

    [[nodiscard]] microseconds half_guard() const noexcept { return std::chrono::duration_cast<microseconds>(guard_) / 2; }

    /// Compares all clocks. Of the majority that is near any node that votes, this client knows all but the unknown ones; so at least one
    /// of the `known - (nodes - majority)` slowest that it knows is no further than half the guard ahead of that node.
    void compare() noexcept
    {
        std::array<microseconds, max_nodes> slowest{};
        unsigned known = 0;
        fresh_.reset();
        for (unsigned node = 0; node < nodes_; ++node) {
            auto& seen = seen_[node];
            if (!seen.ahead) continue;
            slowest[known++] = *seen.ahead - seen.doubt;
            seen.near = static_cast<unsigned>(std::count_if(seen_.begin(), seen_.begin() + nodes_, [&](auto const& other) { return near(seen, other); }));
            if (seen.near >= quorum(nodes_)) fresh_ = std::max(fresh_.value_or(*seen.ahead), *seen.ahead);
        }
        unknown_ = nodes_ - known;
        if (!fresh_) return;
        std::sort(slowest.begin(), slowest.begin() + known);
        auto const lead = std::min<microseconds>(std::chrono::seconds{1}, half_guard() / 2);
        fresh_ = std::min(*fresh_ + lead, slowest[known + quorum(nodes_) - nodes_ - 1] + half_guard());
    }

    /// Returns: whether the clocks are certainly within half the guard.
    [[nodiscard]] bool near(sight const& a, sight const& b) const noexcept
    {
        if (&a == &b) return true;
        return b.ahead && std::chrono::abs(*a.ahead - *b.ahead) + a.doubt + b.doubt <= half_guard();
    }

    unsigned nodes_;
    boot_clock::duration guard_;
    std::array<sight, max_nodes> seen_{};
    unsigned unknown_ = nodes_;
    std::optional<microseconds> fresh_;  ///< what missing counters begin with, less our clock
};

}  // namespace holdfast::redis
