// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/insertion_sort.hpp>
#include <holdfast/core/validity.hpp>
#include <holdfast/quorum/node_set.hpp>
#include <holdfast/redis/commands.hpp>
#include <holdfast/redis/error.hpp>
#include <holdfast/redis/vote_ledger.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <system_error>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// Returns: why the restart guard does not cover a lease of `ttl`; empty if it does, or is off. Follows the ttl and a
/// comma.
[[nodiscard]] inline std::string uncovered(std::chrono::milliseconds ttl, std::chrono::milliseconds restart_guard)
{
    if (restart_guard.count() == 0 || ttl <= restart_guard) return {};
    return "longer than restart_guard, " + std::to_string(restart_guard.count()) +
           " ms: a server that is restarted would grant the lock again while it is held; set restart_guard to cover "
           "it, the same for every client";
}

/// Decides which nodes have a vote, and what value missing counters begin with. No I/O, no clock: it is told what a
/// connection learns when it is made. A node that
///
/// | is known to | may vote |
/// |---|---|
/// | have no connection | no: `cannot_connect` |
/// | run for less than the guard, and the drift of a lease as long: it may have forgotten what it granted | no: `restarted_recently`, until that has passed |
/// | have a clock that cannot be compared, as too few others are known | no: `clock_not_compared` |
/// | have a clock that no majority of the nodes is within half the guard of | no: `clock_out_of_line` |
/// | none of these | yes |
///
/// The guard is at least the longest ttl in use, and the same for every client. 0: every connected node has a vote.
///
/// So the clocks of two voters are within the guard, whichever clocks each client knows; and a fence that a node
/// forgot, or brings back from an old snapshot, was at most a guard and a half ahead of its clock: its fences begin
/// that far after its start, at the `floor`. Why: docs/proofs.md, "Clocks of masters", and docs/fencing-tokens.md.
class eligibility {
public:
    /// `fence_lifetime`: the shortest time that a counter is kept after its last use.
    eligibility(unsigned nodes, boot_clock::duration guard,
                std::chrono::milliseconds fence_lifetime = shortest_fence_lifetime)
        : nodes_{nodes}, guard_{guard}, fence_lifetime_{fence_lifetime}
    {
    }

    /// Returns: what is known of the votes that a node has given.
    [[nodiscard]] vote_ledger ledger_of(unsigned node) const noexcept { return vote_ledger{given_, node}; }

    /// Effects: notes that a connection was made. The node said that its clock shows `server_time`, since 1970, and
    /// that it has run for at least `uptime`. Its greeting arrived by `now`, at most `took` after the question: its
    /// clock is known no better than that. A later greeting replaces an earlier one.
    void connected(unsigned node, std::chrono::microseconds server_time, boot_clock::duration uptime,
                   boot_clock::time_point now, boot_clock::duration took = {}) noexcept
    {
        auto const doubt = std::chrono::ceil<microseconds>(took) / 2;  // mutant: the time that a greeting took left out
        auto const off_since = seen_[node].ahead && far_off(node) ? seen_[node].off_since : now;
        seen_[node] = {.connected = true,
                       .shows_clock = server_time.count() != 0,
                       .at = now,
                       .off_since = off_since,
                       .ahead = server_time - since_boot(now) + doubt,
                       .doubt = doubt,
                       .started = now - uptime,
                       .born = server_time - std::chrono::duration_cast<microseconds>(uptime)};
        compare();
    }

    /// Effects: notes that another client took a clock to show `shown`, in µs since 1970, before now. What no clock in
    /// line can show is ignored.
    void heard(std::int64_t shown, boot_clock::time_point now) noexcept
    {
        auto const known = seen_latest(now);
        microseconds most = std::chrono::minutes{1};  // a server takes no score that is further ahead
        if (guard_ != boot_clock::duration::zero()) most = std::min(most, half_guard());
        if (known.count() == 0 || shown <= 0 || microseconds{shown} > known + most) return;
        if (microseconds{shown} <= heard_latest(now)) return;
        heard_ = microseconds{shown} - since_boot(now);
        heard_at_ = now;
    }

    /// Effects: notes that the connection was lost. The node's clock still counts when others are compared.
    void disconnected(unsigned node) noexcept { seen_[node].connected = false; }

    /// Returns: no error, or why the grants of the node do not count now.
    [[nodiscard]] std::error_code may_vote(unsigned node, boot_clock::time_point now) const noexcept
    {
        auto const& seen = seen_[node];
        if (!seen.connected) return errc::cannot_connect;
        if (now - seen.started < held_back()) return errc::restarted_recently;  // mutant: no restart guard
        // mutant: clocks not compared
        if (guard_ == boot_clock::duration::zero() || seen.near >= quorum::majority_of(nodes_)) return {};
        return out_of_line(node) ? errc::clock_out_of_line : errc::clock_not_compared;
    }

    /// Returns: whether the clock of a node that is connected looks out of line.
    [[nodiscard]] bool out_of_line(unsigned node) const noexcept { return seen_[node].connected && far_off(node); }

    /// Returns: whether the node's clock was seen so long ago that it may have been set since.
    [[nodiscard]] bool outdated(unsigned node, boot_clock::time_point now) const noexcept
    {
        return now - seen_[node].at >= std::chrono::seconds{10};
    }

    /// Returns: whether the clock of another node has looked out of line since long after this one's was seen, or still
    /// does an hour after it: perhaps all clocks were set since. True for one node in a second at most: the caller
    /// connects to it anew, and not to two of them together.
    [[nodiscard]] bool contradicted(unsigned node, boot_clock::time_point now) noexcept
    {
        for (unsigned other = 0; other < nodes_; ++other) {
            bool const long_after = seen_[other].off_since - seen_[node].at >= std::chrono::seconds{10} ||
                                    seen_[other].at - seen_[node].at >= std::chrono::hours{1};
            if (!out_of_line(other) || !long_after) continue;
            if (now - contradicted_at_ < std::chrono::seconds{1}) return false;
            contradicted_at_ = now;
            return true;
        }
        return false;
    }

    /// Returns: whether the node's clock looks out of line but is known only roughly, because its greeting took long.
    /// Another look may show it in line. Two clocks that agree and are known better than this are always found near.
    [[nodiscard]] bool vague(unsigned node) const noexcept
    {
        return out_of_line(node) && seen_[node].doubt > half_guard() / 4;
    }

    /// Returns: how long the restart guard still keeps the node from voting.
    [[nodiscard]] boot_clock::duration guarded_for(unsigned node, boot_clock::time_point now) const noexcept
    {
        return std::max(seen_[node].started + held_back() - now, boot_clock::duration::zero());
    }

    /// Returns: the shortest time that the node can have run.
    [[nodiscard]] boot_clock::duration running_for(unsigned node, boot_clock::time_point now) const noexcept
    {
        return now - seen_[node].started;
    }

    /// Returns: whether the node's vote depends on clocks that are not known yet.
    [[nodiscard]] bool undecided(unsigned node, boot_clock::time_point now) const noexcept
    {
        return may_vote(node, now) == errc::clock_not_compared;
    }

    /// Returns: the value that missing counters begin with, in µs since 1970; 0 if no clock is in line. It is ahead of
    /// every clock that is in line, so that the nodes answer alike, but only so far that a node which begins anew can
    /// catch up.
    [[nodiscard]] std::uint64_t proposal(boot_clock::time_point now) const noexcept
    {
        if (!fresh_) return 0;
        auto const fence = *fresh_ + since_boot(now);
        return fence.count() < 0 ? 0 : static_cast<std::uint64_t>(fence.count());
    }

    /// Returns: the most that a server's clock shows now, in µs since 1970, as far as this client or one that it heard
    /// of knows them; 0 if none is known.
    [[nodiscard]] std::uint64_t latest(boot_clock::time_point now) const noexcept
    {
        return static_cast<std::uint64_t>(std::max(seen_latest(now), heard_latest(now)).count());
    }

    /// Returns: the least fence, in µs since 1970, that the node can have written since it was started and has a vote.
    /// A lower one is from a snapshot, and counts as forgotten.
    [[nodiscard]] std::uint64_t floor(unsigned node) const noexcept
    {
        auto const f = seen_[node].born + std::chrono::duration_cast<microseconds>(guard_) * 3 / 2;
        return f.count() < 1 ? 1 : static_cast<std::uint64_t>(f.count());  // mutant: fences of an old snapshot believed
    }

    /// Returns: how long a counter is kept after its last use. A clock may be behind the counter, by up to one and a
    /// half guards, or, without a guard, by what clocks may differ; it has caught up before the counter expires.
    [[nodiscard]] std::chrono::milliseconds fence_lifetime() const noexcept
    {
        auto const guard = std::chrono::ceil<std::chrono::milliseconds>(guard_);
        if (guard.count() != 0 || nodes_ == 1) return std::max(fence_lifetime_, 2 * guard);
        return fence_lifetime_ + std::chrono::ceil<std::chrono::milliseconds>(unguarded_fence_bound);
    }

    /// Returns: how far ahead of its own clock a node may let a counter begin.
    [[nodiscard]] std::chrono::microseconds max_lead() const noexcept { return half_guard(); }

    /// Returns: the shortest time that a server can have run if it reports `reported` as `uptime_in_seconds` in `INFO
    /// server`. It subtracts whole seconds of its clock, and so may report one too many.
    [[nodiscard]] static constexpr std::chrono::seconds certain_uptime(std::chrono::seconds reported) noexcept
    {
        return std::max(reported - std::chrono::seconds{1}, std::chrono::seconds{0});
    }

private:
    /// Returns: how long a node must have run. It may have granted a lease as long as the guard just before it was
    /// started, by whose holder's clock that may last longer than by this one.
    [[nodiscard]] boot_clock::duration held_back() const noexcept
    {
        if (guard_ == boot_clock::duration::zero()) return guard_;
        return guard_ + drift(std::chrono::ceil<std::chrono::milliseconds>(guard_));
    }

    /// Returns: whether the node's clock, as it was seen last, is out of line.
    [[nodiscard]] bool far_off(unsigned node) const noexcept
    {
        return guard_ != boot_clock::duration::zero() && seen_[node].near + unknown_ < quorum::majority_of(nodes_);
    }

    using microseconds = std::chrono::microseconds;

    struct sight {
        bool connected = false;
        bool shows_clock = false;             ///< it has told the time
        boot_clock::time_point at{};          ///< when it was seen
        boot_clock::time_point off_since{};   ///< when it was seen out of line first, if it is
        std::optional<microseconds> ahead{};  ///< the server's clock minus ours
        microseconds doubt{};                 ///< the error of `ahead`, at most
        boot_clock::time_point started{};     ///< the latest time at which it can have started
        microseconds born{};                  ///< the same on the server's clock, since 1970
        unsigned near = 0;                    ///< how many clocks, its own among them, are within half the guard
    };

    [[nodiscard]] static microseconds since_boot(boot_clock::time_point now) noexcept
    {
        return std::chrono::duration_cast<microseconds>(now.time_since_epoch());
    }

    /// Returns: the most that a clock in line that this client has seen shows now; 0 if none does.
    [[nodiscard]] microseconds seen_latest(boot_clock::time_point now) const noexcept
    {
        microseconds most{0};
        for (unsigned node = 0; node < nodes_; ++node)
            if (seen_[node].shows_clock && !far_off(node)) most = std::max(most, *seen_[node].ahead + since_boot(now));
        return most;
    }

    /// Returns: the most that one shows of which it heard; 0 if it heard of none. It fades by a hundredth of the time:
    /// one that was set right is forgotten, and one that is still ahead is heard of again.
    [[nodiscard]] microseconds heard_latest(boot_clock::time_point now) const noexcept
    {
        if (!heard_) return microseconds{0};
        return *heard_ + since_boot(now) - std::max(microseconds{0}, since_boot(now) - since_boot(heard_at_)) / 100;
    }

    [[nodiscard]] microseconds half_guard() const noexcept
    {
        return std::chrono::duration_cast<microseconds>(guard_) / 2;
    }

    /// Effects: compares all clocks. A node that votes is near a majority; this client knows all of their clocks but
    /// the unknown ones. So at least one of the `known - (nodes - majority)` slowest known clocks is at most half the
    /// guard ahead of that node.
    void compare() noexcept
    {
        std::array<microseconds, quorum::max_nodes> slowest{};
        unsigned known = 0;
        fresh_.reset();
        for (unsigned node = 0; node < nodes_; ++node) {
            auto& seen = seen_[node];
            if (!seen.ahead) continue;
            slowest[known++] = *seen.ahead - seen.doubt;
            seen.near = static_cast<unsigned>(std::count_if(seen_.begin(), seen_.begin() + nodes_,
                                                            [&](auto const& other) { return near(seen, other); }));
            if (seen.near >= quorum::majority_of(nodes_)) fresh_ = std::max(fresh_.value_or(*seen.ahead), *seen.ahead);
        }
        unknown_ = nodes_ - known;
        if (!fresh_) return;
        holdfast::detail::insertion_sort(slowest.begin(), slowest.begin() + known);
        auto const lead = std::min<microseconds>(std::chrono::seconds{1}, half_guard() / 2);
        fresh_ = std::min(*fresh_ + lead, slowest[known + quorum::majority_of(nodes_) - nodes_ - 1] + half_guard());
    }

    /// Returns: whether the clocks are certainly within half the guard.
    [[nodiscard]] bool near(sight const& a, sight const& b) const noexcept
    {
        if (&a == &b) return true;
        return b.ahead && std::chrono::abs(*a.ahead - *b.ahead) + a.doubt + b.doubt <= half_guard();
    }

    unsigned nodes_;
    std::shared_ptr<vote_table> const given_ = std::make_shared<vote_table>();
    boot_clock::duration guard_;
    std::chrono::milliseconds fence_lifetime_;
    std::array<sight, quorum::max_nodes> seen_{};
    unsigned unknown_ = nodes_;
    std::optional<microseconds> heard_;  ///< what the latest clock shows, minus ours, as others know it
    boot_clock::time_point heard_at_{};
    boot_clock::time_point contradicted_at_{};
    std::optional<microseconds> fresh_;  ///< what missing counters begin with, minus our clock
};

}  // namespace holdfast::redis
