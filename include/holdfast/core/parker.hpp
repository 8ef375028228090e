// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/clock.hpp>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace holdfast::detail {

/// A place where one thread sleeps until another one wakes it with a signal: a set of bits, collected until it looks.
/// (`std::binary_semaphore` would do, but in libstdc++ 12 its timed wait spins and then shares a global table of waiters.)
/// May be destroyed as soon as the last signal that will ever be sent has been collected: the wake-up that may still be under way
/// touches no memory.
class parker {
public:
    parker() = default;
    parker(parker const&) = delete;
    parker& operator=(parker const&) = delete;

    /// Effects: sleeps until a signal, `deadline`, or for no reason at all. Signals that came before are collected at once.
    /// Returns: the signals collected; 0 where there were none.
    std::uint32_t park_until(boot_clock::time_point deadline) noexcept
    {
        if (auto const early = signals_.exchange(0, std::memory_order_acquire)) return early;
        timespec relative{};
        timespec const* timeout = nullptr;
        if (deadline != boot_clock::time_point::max()) {
            auto const left = deadline - boot_clock::now();
            if (left <= left.zero()) return 0;
            auto const whole = std::chrono::duration_cast<std::chrono::seconds>(left);
            relative = {.tv_sec = whole.count(), .tv_nsec = (left - whole).count()};
            timeout = &relative;
        }
        ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&signals_), FUTEX_WAIT_PRIVATE, 0U, timeout, nullptr, 0);
        return signals_.exchange(0, std::memory_order_acquire);
    }

    /// Effects: adds `signal` to what the parked thread, or the next one, collects, and wakes it.
    void unpark(std::uint32_t signal = 1) noexcept
    {
        auto* const word = reinterpret_cast<std::uint32_t*>(&signals_);
        signals_.fetch_or(signal, std::memory_order_release);
        ::syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    }

private:
    std::atomic<std::uint32_t> signals_{0};
    static_assert(std::atomic<std::uint32_t>::is_always_lock_free && sizeof(std::atomic<std::uint32_t>) == 4);
};

}  // namespace holdfast::detail
