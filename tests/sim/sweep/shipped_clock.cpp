// SPDX-License-Identifier: MIT
#include "shipped_clock.hpp"

#include <holdfast/core/clock.hpp>

#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <ctime>

// In the place of the one in the C library. A wall clock begins with the clock since boot: nothing but being set tells them apart.
extern "C" int clock_gettime(clockid_t which, timespec* t) noexcept
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

namespace holdfast::test {

void read_shipped_clock(sim::host& h) { h.read_time_with(&boot_clock::now); }

}  // namespace holdfast::test
