// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/sim/host.hpp>

#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <ctime>

/// Replaces the C library's clocks in a program, if one of its files includes this header. In a simulated process the
/// clocks are its computer's. So code there that reads `boot_clock`, `std::chrono::steady_clock` or `system_clock` runs
/// in virtual time. A wall clock begins with the clock since boot: only setting it makes them differ.
// NOLINTNEXTLINE(misc-definitions-in-headers): were it weak, a sanitizer's would be taken
extern "C" [[gnu::visibility("default")]] int clock_gettime(clockid_t which, timespec* t) noexcept
{
    auto const* const h = holdfast::sim::host::acting();
    if (!h) return static_cast<int>(::syscall(SYS_clock_gettime, which, t));
    auto const shown = which == CLOCK_BOOTTIME   ? h->since_boot().time_since_epoch()
                       : which == CLOCK_REALTIME ? h->time_of_day().time_since_epoch()
                                                 : h->monotonic().time_since_epoch();
    auto const whole = std::chrono::floor<std::chrono::seconds>(shown);
    *t = {.tv_sec = whole.count(), .tv_nsec = (shown - whole).count()};
    return 0;
}
