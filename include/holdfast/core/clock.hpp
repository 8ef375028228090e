// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>

#include <chrono>
#include <cmath>
#include <ctime>
#include <ratio>
#include <type_traits>

namespace holdfast::inline HOLDFAST_ABI {

/// The clock for all leases: `CLOCK_BOOTTIME`. It is steady, and runs on while the machine sleeps, as the server's
/// clock does. It meets the standard's Clock requirements. Changes of the wall clock do not affect it.
struct boot_clock {
    using duration = std::chrono::nanoseconds;               ///< what differences are counted in
    using rep = duration::rep;                               ///< of `duration`
    using period = duration::period;                         ///< of `duration`
    using time_point = std::chrono::time_point<boot_clock>;  ///< a time since the machine was started
    static constexpr bool is_steady = true;                  ///< it is never set

    /// Returns: the time since the machine was started, with the time that it slept.
    [[nodiscard]] static time_point now() noexcept
    {
        timespec t{};
        // mutant: wall-clock validity, a clock that stands still while the machine sleeps, wall-clock validity of a session
        ::clock_gettime(CLOCK_BOOTTIME, &t);
        return time_point{std::chrono::seconds{t.tv_sec} + std::chrono::nanoseconds{t.tv_nsec}};
    }
};

/// Returns: `from + by`, or `from` if `by` is negative: "wait for -1h" means "not at all". If that would overflow, the
/// last representable point: "wait for hours::max()" means "for ever".
template <class Rep, class Period>
[[nodiscard]] boot_clock::time_point saturating_add(boot_clock::time_point from,
                                                    std::chrono::duration<Rep, Period> by) noexcept
{
    using wide = std::chrono::duration<long double, std::nano>;
    if (!(by > by.zero())) return from;  // not a number, too
    auto const sum = wide{from.time_since_epoch()} + wide{by};
    if (sum >= wide{boot_clock::duration::max()}) return boot_clock::time_point::max();
    // Integers of `by` could overflow on the way, if its period divides no nanosecond.
    return from + boot_clock::duration{static_cast<boot_clock::rep>(std::ceil(wide{by}.count()))};
}

/// Returns: the point of `boot_clock` that is as far from now as `t` is on its own clock.
template <class Clock, class Duration>
[[nodiscard]] boot_clock::time_point to_boot_clock(std::chrono::time_point<Clock, Duration> const& t)
{
    // Integers would overflow in the difference to a clock's first or last point.
    using wide = std::chrono::duration<long double, std::nano>;
    if constexpr (std::is_same_v<decltype(t), boot_clock::time_point const&>)
        return t;
    else if constexpr (std::is_same_v<Clock, boot_clock>)
        return saturating_add(boot_clock::time_point{}, t.time_since_epoch());
    else
        return saturating_add(boot_clock::now(), wide{t.time_since_epoch()} - wide{Clock::now().time_since_epoch()});
}

}  // namespace holdfast
