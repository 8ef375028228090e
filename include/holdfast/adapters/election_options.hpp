// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/adapters/term.hpp>
#include <holdfast/core/abi.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/name.hpp>
#include <holdfast/core/options.hpp>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

namespace holdfast::inline HOLDFAST_ABI {

/// The options of an `election`. An aggregate. `on_elected` and `on_deposed` must not throw: that ends the program.
struct election_options {
    /// Called when this candidate has become the leader, in a thread that is begun for it. It may work for as long as
    /// the term lasts; then it should return soon after `t.stop_token()` is stopped: no other candidate is elected
    /// before, unless the lease ends. It may also return at once: the term goes on. Its thread has the signal mask of
    /// the thread that made the election.
    std::function<void(term const& t)> on_elected{};

    /// Called when the term is over and `on_elected` has returned. The lock is given back after it, so no other
    /// candidate is elected before it has returned, unless the lease ends.
    std::function<void()> on_deposed{};

    /// Called when a campaign has failed: the lock could not be taken, or the options do not fit its lease. The
    /// candidate goes on by itself. What the function throws is dropped. Without it, a candidate that can never be
    /// elected says nothing. What happens to the lock while it is held goes to `lock_options::on_error`.
    std::function<void(error const&)> on_error{};

    /// How much earlier than its lease a term ends. The lease ends by the local clock before another candidate can get
    /// the lock; what the leader still has to do at the end of its term must fit into this time. Small: a write that
    /// was begun at the end of the term may arrive in the next one. Large: the term ends although the next renewal
    /// would have come in time. At most a third of the ttl: a lease is renewed when two thirds are left. If it is more
    /// than these, each term ends before the first renewal; that is not checked, as it may be meant, without `renew`.
    /// `lock_options::stop_margin` is no substitute: it gives the lease up, which an election keeps, and renews, until
    /// `on_deposed` has returned.
    std::chrono::milliseconds stop_margin{0};

    /// How long the candidate waits after a term before it campaigns again. Short: a leader that fails at once is
    /// elected again and again, if no other candidate is faster. Long: if it is the only candidate, there is no leader
    /// for that time.
    std::chrono::milliseconds pause{1000};

    /// How long the candidate waits after a failed campaign: `retry.first`, and twice as long after each further one in
    /// a row, up to `retry.most`; less a random part, up to half. After `misconfigured`: `retry.most`. A campaign fails
    /// when the servers were out of reach for `lock_options::unavailable_after`. Short: reports come often. Long: after
    /// an outage there is no leader for that time.
    backoff_options retry{.first = std::chrono::milliseconds{500}, .most = std::chrono::milliseconds{10'000}};
};

/// Effects: none if `options` can be used. Throws: `error` (`misconfigured`) otherwise, naming the field.
inline void check_options(std::string_view lock_name, election_options const& options)
{
    auto const require = [&](bool good, char const* what) {
        if (good) return;
        throw detail::error_of(lock_name, {make_error_code(errc::misconfigured), std::string{"election: "} + what});
    };
    require(options.stop_margin.count() >= 0 && options.stop_margin <= longest_ttl,
            "stop_margin must not be negative, and at most a day");
    require(options.pause.count() >= 0, "pause must not be negative");
    require(options.retry.first.count() > 0 && options.retry.most.count() > 0,
            "retry.first and retry.most must be positive");
    require(options.pause <= longest_ttl && options.retry.most <= longest_ttl,
            "pause and retry.most must be at most a day");  // before it is compared with microseconds
    require(options.retry.most >= options.retry.first, "retry.most must be at least retry.first");
}

}  // namespace holdfast
