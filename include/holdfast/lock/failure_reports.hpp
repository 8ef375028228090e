// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/clock.hpp>
#include <holdfast/core/options.hpp>
#include <holdfast/core/report_once.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/lock/report.hpp>

#include <atomic>
#include <chrono>
#include <new>
#include <string>
#include <string_view>

namespace holdfast::detail {

/// Tells the `on_error` of a client's locks what goes wrong for many of them at once: each cause once for each server, and once more when it is
/// over. The hook of the lock that meets it first is told; of its end, that of the lock that finds it. Thread-safe.
///
/// | state   | event                                                                  | next                              |
/// |---------|------------------------------------------------------------------------|-----------------------------------|
/// | well    | a renewal or an unlock fails                                           | failing: told                     |
/// | failing | another one fails                                                      | told, where the cause is new      |
/// | failing | a lock is granted or renewed, nothing failed for a while, and no lease is left whose last renewal failed | well: told that each cause is over |
class failure_reports {
public:
    /// How long nothing must have failed before it is over: what fails for one lock and not for another does not begin and end all the time.
    static constexpr std::chrono::seconds quiet{1};

    /// Effects: notes what came of something that was asked for the lock `name`.
    template <class T>
    void note(lock_options const& told, std::string_view name, result<T> const& got) noexcept
    {
        got ? went_well(told, name) : failed(told, name, got.why());
    }

    /// Effects: tells that something failed for the lock `name`, where this is news.
    void failed(lock_options const& told, std::string_view name, failure const& why) noexcept
    {
        last_.store(boot_clock::now().time_since_epoch().count(), std::memory_order_relaxed);
        if (!told.on_error || !reported_.begins(why.server, why.code)) return;
        any_.store(true, std::memory_order_release);
        report(told, name, why);
    }

    /// Effects: tells that `unlock()` of the lock `name` went as `why` says: always that the lock was not ours, otherwise as above.
    void unlock_failed(lock_options const& told, std::string_view name, failure const& why) noexcept
    try {
        failure const said{why.code, why.detail.empty() ? "unlock" : "unlock: " + why.detail, why.server};
        bool const own = why.code == errc::lease_lost || why.code == errc::not_owner;
        own ? report(told, name, said) : failed(told, name, said);
    } catch (std::bad_alloc const&) {  // NOLINT(bugprone-empty-catch): as in `report`
    }

    /// Effects: tells, once for each lock, that what stands in its way is no lock.
    void obstructed(lock_options const& told, std::string_view name, failure const& why) noexcept
    {
        if (told.on_error && obstructed_.begins(name, why.code)) report(told, name, why);
    }

    /// Effects: the lock `name` was granted or renewed; tells what is over now.
    void went_well(lock_options const& told, std::string_view name) noexcept
    {
        if (!any_.load(std::memory_order_acquire) || !told.on_error || failing_.load(std::memory_order_relaxed) != 0) return;
        boot_clock::time_point const last{boot_clock::duration{last_.load(std::memory_order_relaxed)}};
        if (boot_clock::now() - last < quiet || !any_.exchange(false, std::memory_order_acq_rel)) return;
        for (auto const& [server, causes] : reported_.end_all())
            for (auto const cause : causes) report_end(told, name, cause, server);
    }

    /// Effects: counts a lease whose last renewal failed, or does so no more; `counted` is whether it is counted.
    void count(bool& counted, bool failing) noexcept
    {
        if (failing && !counted) ++failing_;
        if (!failing && counted) --failing_;
        counted = failing;
    }

private:
    static void report_end(lock_options const& told, std::string_view name, std::error_code cause, std::string const& server) noexcept
    try {
        report(told, name, {cause, (server.empty() ? "" : server + ": ") + "this is over, leases are granted and renewed again", server},
               true);
    } catch (std::bad_alloc const&) {  // NOLINT(bugprone-empty-catch): as in `report`
    }

    report_once reported_;
    report_once obstructed_;  // its places are locks
    std::atomic<bool> any_{false};
    std::atomic<unsigned> failing_{0};
    std::atomic<boot_clock::rep> last_{0};
};

}  // namespace holdfast::detail
