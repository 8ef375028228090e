// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/fork_guard.hpp>
#include <holdfast/core/hold_state.hpp>
#include <holdfast/core/lease.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI {

namespace detail {

/// One term of a leader. It is over when the lease has no more than the margin left, when it is lost, or when the term
/// is given up, and stays over. Thread-safe.
class term_state {
public:
    term_state(holdfast::lease hold, boot_clock::duration margin) : lease_{std::move(hold)}, margin_{margin} {}

    [[nodiscard]] holdfast::lease const& lease() const noexcept { return lease_; }

    /// Returns: the time until the term is over, if the lease is not renewed before.
    [[nodiscard]] boot_clock::duration remaining() const noexcept
    {
        if (over_.load()) return boot_clock::duration::zero();
        // mutant: a term that outlives its lease
        return std::max<boot_clock::duration>(lease_.remaining() - margin_, boot_clock::duration::zero());
    }

    [[nodiscard]] bool still_held() noexcept
    {
        if (remaining() > boot_clock::duration::zero()) return true;
        give_up();
        return false;
    }

    /// Effects: the term is over. Its end is not announced yet.
    void give_up() noexcept { over_.store(true); }

    /// Effects: the term is over, and the tokens of `stop_token()` are stopped: that runs the user's callbacks.
    void announce_end() noexcept
    {
        give_up();
        source_.request_stop();
    }

    /// Returns: a token that is stopped when the term is over; in a child of fork() it is stopped already.
    [[nodiscard]] std::stop_token stop_token() const
    {
        return origin_.in_child() ? stopped_token() : source_.get_token();
    }

private:
    holdfast::lease const lease_;
    boot_clock::duration const margin_;
    std::atomic<bool> over_{false};
    std::stop_source source_;
    fork_guard const origin_;
};

}  // namespace detail

/// The time for which a candidate of an `election` is the leader. A cheap copyable handle, which may outlive the
/// election; safe to use from any thread. One that was default-constructed is over.
class term {
public:
    term() noexcept = default;
    /// Effects: makes a handle to a term. For `election` itself.
    explicit term(std::shared_ptr<detail::term_state> of) noexcept : state_{std::move(of)} {}

    /// Returns: the number of the term, greater than that of every earlier one; 0 if the lock has no fencing tokens.
    /// Send it with every write: the resource refuses a smaller one than it has seen.
    [[nodiscard]] std::uint64_t fencing_token() const noexcept { return lease().fencing_token(); }

    /// Returns: whether the term goes on. Reads the clock, so it is right even in the first call after the process was
    /// stopped. Once false, it stays false.
    [[nodiscard]] bool still_held() const noexcept { return state_ && state_->still_held(); }

    /// Returns: the time until the term is over, if its lease is not renewed before; zero once it is over.
    [[nodiscard]] boot_clock::duration remaining() const noexcept
    {
        return state_ ? state_->remaining() : boot_clock::duration::zero();
    }

    /// Returns: a token that is stopped when the term is over. Its callbacks run in the candidate's thread: while one
    /// runs, `on_deposed` is not called.
    [[nodiscard]] std::stop_token stop_token() const
    {
        return state_ ? state_->stop_token() : detail::stopped_token();
    }

    /// Returns: the lease of the lock. It ends `stop_margin` after the term.
    [[nodiscard]] holdfast::lease lease() const noexcept { return state_ ? state_->lease() : holdfast::lease{}; }

    /// Returns: whether both are handles to the same term.
    [[nodiscard]] friend bool operator==(term const& a, term const& b) noexcept { return a.state_ == b.state_; }

private:
    std::shared_ptr<detail::term_state> state_;
};

}  // namespace holdfast
