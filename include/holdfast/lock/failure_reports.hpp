// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/name.hpp>
#include <holdfast/core/report_once.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/lock/activity.hpp>
#include <holdfast/lock/report.hpp>

#include <atomic>
#include <chrono>
#include <new>
#include <string>
#include <string_view>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// Reports to `on_error` what goes wrong for many locks of a client at once: each cause once for each server, and once
/// more when it is over. The hook of the lock that meets a cause first is called; for its end, the hook of the lock
/// that first sees the end. Thread-safe.
///
/// | state | event | next |
/// |---|---|---|
/// | well | a renewal or an unlock fails | failing: reported |
/// | failing | another one fails | failing: reported if the cause is new |
/// | failing | a lock is granted or renewed, nothing failed for a while, and no lease is left whose last renewal failed | well: each cause is reported as over |
class failure_reports {
public:
    /// How long nothing must have failed before the causes are over. Otherwise a failure that meets some locks and not
    /// others would begin and end all the time.
    static constexpr std::chrono::seconds quiet{1};

    activity seen;  ///< what the client's locks do, well or not

    /// Effects: reports a failure for the lock `name`, if it is new.
    void failed(error_hook const& told, std::string_view name, failure const& why) noexcept
    {
        last_.store(boot_clock::now().time_since_epoch().count(), std::memory_order_relaxed);
        if (!told || !reported_.begins(why.server, why.code)) return;
        any_.store(true, std::memory_order_release);
        report(told, name, why);
    }

    /// Effects: reports that `unlock()` of the lock `name` failed with `why`: always if the lock was not ours,
    /// otherwise as above.
    void unlock_failed(error_hook const& told, std::string_view name, failure const& why) noexcept
    try {
        failure const said{why.code, why.detail.empty() ? "unlock" : "unlock: " + why.detail, why.server};
        bool const own = why.code == errc::lease_lost || why.code == errc::not_owner;
        own ? report(told, name, said) : failed(told, name, said);
    } catch (std::bad_alloc const&) {  // NOLINT(bugprone-empty-catch): as in `report`
    }

    /// Effects: notes that the lock `name` was granted or renewed; reports what is over now.
    void went_well(error_hook const& told, std::string_view name) noexcept
    {
        if (!any_.load(std::memory_order_acquire) || !told || failing_.load(std::memory_order_relaxed) != 0) return;
        boot_clock::time_point const last{boot_clock::duration{last_.load(std::memory_order_relaxed)}};
        if (boot_clock::now() - last < quiet || !any_.exchange(false, std::memory_order_acq_rel)) return;
        for (auto const& [server, cause] : reported_.end_all()) report_end(told, name, cause, server);
    }

    /// Effects: counts the lease if its last renewal failed, and no longer if not. `counted`: whether it is counted.
    void count(bool& counted, bool failing) noexcept
    {
        if (failing && !counted) ++failing_;
        if (!failing && counted) --failing_;
        counted = failing;
    }

private:
    static void report_end(error_hook const& told, std::string_view name, std::error_code cause,
                           std::string const& server) noexcept
    try {
        report(told, {cause,
                      "lock " + quoted(name) + ": " + (server.empty() ? "" : server + ": ") +
                          "leases are granted and renewed again; this is over",
                      {.lock_name = std::string{name}, .server = server, .over = true}});
    } catch (std::bad_alloc const&) {  // NOLINT(bugprone-empty-catch): as in `report`
    }

    report_once reported_;
    std::atomic<bool> any_{false};
    std::atomic<unsigned> failing_{0};
    std::atomic<boot_clock::rep> last_{0};
};

}  // namespace holdfast::detail
