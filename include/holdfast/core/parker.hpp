// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/futex.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// A place where one thread sleeps until another one wakes it with a signal. Signals are bits, collected until the
/// thread takes them. May be destroyed as soon as the last signal that will ever be sent has been collected: the
/// wake-up that may still be under way touches no memory.
class parker {
public:
    parker() = default;
    parker(parker const&) = delete;
    parker& operator=(parker const&) = delete;

    /// Effects: sleeps until a signal, `deadline`, or for no reason at all. Signals that came before are collected at
    /// once.
    /// Returns: the signals collected; 0 if there were none.
    std::uint32_t park_until(boot_clock::time_point deadline) noexcept
    {
        std::uint32_t none = 0;
        if (!word_.compare_exchange_strong(none, asleep, std::memory_order_acquire))
            return word_.exchange(0, std::memory_order_acquire);
        timespec relative{};
        timespec const* timeout = nullptr;
        if (deadline != boot_clock::time_point::max()) {
            auto const now = boot_clock::now();
            auto const left = std::min<boot_clock::duration>(std::max(deadline, now) - now, longest_nap);
            auto const whole = std::chrono::duration_cast<std::chrono::seconds>(left);
            relative = {.tv_sec = whole.count(), .tv_nsec = (left - whole).count()};
            timeout = &relative;
        }
        futex_wait(word_, asleep, timeout);
        return word_.exchange(0, std::memory_order_acquire) & ~asleep;
    }

    /// Effects: collects signals without sleeping. Returns: the signals collected; 0 if there were none.
    std::uint32_t take() noexcept { return word_.exchange(0, std::memory_order_acquire); }

    /// Effects: adds `signal`, which is less than 2^31, to what the parked thread, or the next one, collects, and wakes
    /// it.
    void unpark(std::uint32_t signal = 1) noexcept
    {
        auto* const word = &word_;
        if ((word_.fetch_or(signal, std::memory_order_release) & asleep) != 0) futex_wake(word);
    }

    /// The kernel's timeouts stand still while the machine is suspended, deadlines do not: they are checked again after
    /// this time.
    static constexpr std::chrono::seconds longest_nap{10};

private:
    static constexpr std::uint32_t asleep = std::uint32_t{1} << 31U;

    futex_word word_{0};  // the signals, and whether a thread sleeps
};

}  // namespace holdfast::detail
