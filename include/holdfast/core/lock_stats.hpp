// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <system_error>

namespace holdfast::inline HOLDFAST_ABI {

/// How often something took how long.
struct duration_histogram {
    /// The upper bounds of the buckets, the last one aside, which has none: 100 µs, and four times as much each time,
    /// to 7 minutes.
    static constexpr std::array<std::chrono::microseconds, 12> bounds = [] {
        std::array<std::chrono::microseconds, 12> all{};
        std::chrono::microseconds bound{100};
        for (auto& one : all) {
            one = bound;
            bound *= 4;
        }
        return all;
    }();

    std::array<std::uint64_t, bounds.size() + 1> counts{};  ///< how many were in each bucket
    /// Of all of them, each rounded. In ns, 100,000 locks that are held all the time would fill 63 bits in a day.
    std::chrono::microseconds sum{};
};

/// What the locks of a client have done since it was made. Names are not told apart: there may be many. Each slot of a
/// semaphore is a lock: a call that waits for any of them counts as one for each, of which all but one are canceled.
struct lock_stats {
    std::uint64_t waiting = 0;  ///< calls that wait for a lock now, asynchronous ones, too
    std::uint64_t held = 0;     ///< locks that are held now

    std::uint64_t acquired = 0;     ///< how often a lock was acquired
    std::uint64_t handed_over = 0;  ///< of those, from another holder of this process, without asking the store
    std::uint64_t timed_out = 0;    ///< how often others held it until the time was over, or at a single attempt
    std::uint64_t canceled = 0;     ///< how often a wait was ended by a stop, or by the end of its lock object
    std::uint64_t failed = 0;       ///< how often the store could not be asked, or said that it refuses
    std::uint64_t released = 0;     ///< how often a lock was given up whose lease was not lost

    std::uint64_t renewed = 0;          ///< how often a lease was renewed or extended
    std::uint64_t renewals_failed = 0;  ///< how often that failed and the lease went on

    std::uint64_t lost_by_deadline = 0;  ///< leases that were not renewed in time
    std::uint64_t lost_in_store = 0;     ///< leases that the store said are over: it forgot them, or a session ended

    duration_histogram waits;  ///< of what was acquired
    duration_histogram holds;  ///< of what was released or lost
};

/// What happened to a lock, as an observer is told.
struct lock_event {
    /// What can happen.
    enum class kind : std::uint8_t {
        /// a call for the lock begins, before anything is asked; `acquired` or `not_acquired` comes last, unless the
        /// call threw because its lock object was destroyed, or for want of memory
        attempted,
        waiting,       ///< the call has to wait, as another holds the lock; once at most, and never of a single attempt
        acquired,      ///< `duration`: of the wait
        not_acquired,  ///< `duration`: of the wait; `code`: `timed_out`, `operation_canceled`, or what `lock()` throws
        renewed,       ///< or extended
        at_risk,       ///< a renewal or an extension failed; the lease goes on, see `lease::at_risk`; `code`: why
        lost,          ///< once for each loss; `duration`: of the hold
        released,      ///< `duration`: of the hold; `code`: as `unlock(ec)` has it. Not for a lease that is lost
        /// an operator asks the holder to release the lock, see `lease::release_requested`; once for each hold;
        /// `duration`: of the hold so far
        release_requested,
    };

    kind what{};                          ///< what happened
    std::string lock_name{};              ///< as it was given
    std::chrono::nanoseconds duration{};  ///< of what `kind` says; otherwise zero
    bool handed_over = false;             ///< `acquired`: from another holder of this process, without asking the store
    std::error_code code{};               ///< of what `kind` says; otherwise no error
    std::string server{};                 ///< with an error in `code`: the one that failed, if one is known
};

}  // namespace holdfast
