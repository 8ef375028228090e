// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/acquire_limits.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/core/options.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/lock/waiter.hpp>

#include <algorithm>
#include <system_error>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// Returns: what a waiter asks a store for that has been unavailable since `since`, as far as it knows.
[[nodiscard]] inline acquire_request request_for(lock_options const& options, patience const& limit, unsigned handoffs,
                                                 boot_clock::time_point since)
{
    acquire_request request{.ttl = options.ttl,
                            .stop_margin = options.stop_margin,
                            .fences = options.fencing ? handoffs + 1 : 0,
                            .in_order = options.fair,  // mutant: a try that overtakes
                            .retry = options.retry,
                            .once = limit.once,
                            .until_decided = limit.until_decided,
                            .deadline = limit.deadline,
                            .beside = limit.beside,
                            .undisputed = limit.undisputed};
    limit_outage(request, since, options.unavailable_after);
    return request;
}

/// Since when the store has been unavailable. After one waiter has waited out an outage, those after it do not wait it
/// out again. Guarded by the queue's mutex.
class outage {
public:
    /// Returns: since when the store has been unavailable, as far as `one` has seen.
    [[nodiscard]] boot_clock::time_point seen_by(waiter const& one) const noexcept
    {
        return lasts_ || !one.was_in_line ? std::max(one.since, answered_) : boot_clock::now();
    }

    /// Returns: whether the store has been unavailable ever since `one` came, as far as `asking`, whose turn it is,
    /// knows.
    [[nodiscard]] bool is_all_for(waiter const& one, waiter const& asking) const noexcept
    {
        return asking.unavailable().value_or(lasts_) && answered_ <= one.since;
    }

    /// Effects: notes that it is the turn of `one`. If it did not wait in line, the last outage may be long ago, and is
    /// forgotten; if it did, for a lock that was held here, the store answered until now.
    void asked_by(waiter const& one) noexcept
    {
        if (!one.was_in_line)
            lasts_ = false;
        else if (!lasts_)
            answered_ = boot_clock::now();
    }

    /// Effects: notes the outcome of the request of `one`.
    void note(std::error_code outcome, waiter const& one) noexcept
    {
        bool const canceled = outcome == std::errc::operation_canceled;
        lasts_ = outcome == errc::unavailable || (canceled && one.unavailable().value_or(lasts_));
        auto const now = boot_clock::now();
        // Before the outage the store may have answered for a long while.
        answered_ = lasts_ ? std::max(answered_, now - one.patience_in_outage) : now;
    }

private:
    boot_clock::time_point answered_{};  ///< it may have answered until then
    bool lasts_ = false;
};

}  // namespace holdfast::detail
