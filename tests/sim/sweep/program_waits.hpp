// SPDX-License-Identifier: MIT
#pragma once

#include "threads.hpp"

#include <holdfast/core/clock.hpp>

#include <dlfcn.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdarg>
#include <cstdint>
#include <ctime>

namespace holdfast::test {

using way_to_kernel = long (*)(long, ...);

/// Not a static of the function: the C++ runtime waits for the initialization of those by that function.
inline std::atomic<way_to_kernel> shipped_syscall{nullptr};

}  // namespace holdfast::test

/// Replaces the C library's way to the kernel in a program, if one of its files includes this header: a thread of a
/// simulated process that waits in a parker lets the world go on instead. So the shipped `parker` runs in virtual time.
/// All else goes to the kernel; also what waits with another value than a parker does, as the C++ runtime.
// NOLINTNEXTLINE(misc-definitions-in-headers, cert-dcl50-cpp): see program_clock.hpp
extern "C" [[gnu::visibility("default")]] long syscall(long number, ...) noexcept
{
    std::va_list given;
    va_start(given, number);
    long argument[6];
    for (auto& one : argument) one = va_arg(given, long);
    va_end(given);
    constexpr auto sleeping = std::uint32_t{1} << 31U;
    auto* const all = holdfast::test::threads::active();
    if (number == SYS_futex && all) {
        auto const* const word = reinterpret_cast<void const*>(argument[0]);
        if (argument[1] == FUTEX_WAIT_PRIVATE && static_cast<std::uint32_t>(argument[2]) == sleeping &&
            holdfast::test::threads::here()) {
            auto const* const timeout = reinterpret_cast<timespec const*>(argument[3]);
            holdfast::test::threads::park_at(word, timeout ? std::chrono::seconds{timeout->tv_sec} +
                                                                 std::chrono::nanoseconds{timeout->tv_nsec}
                                                           : holdfast::boot_clock::duration::max());
            return 0;
        }
        if (argument[1] == FUTEX_WAKE_PRIVATE && all->unpark_at(word)) return 1;
    }
    auto to_kernel = holdfast::test::shipped_syscall.load(std::memory_order_relaxed);
    if (!to_kernel) {
        to_kernel = reinterpret_cast<holdfast::test::way_to_kernel>(::dlsym(RTLD_NEXT, "syscall"));
        holdfast::test::shipped_syscall.store(to_kernel, std::memory_order_relaxed);
    }
    return to_kernel(number, argument[0], argument[1], argument[2], argument[3], argument[4], argument[5]);
}
