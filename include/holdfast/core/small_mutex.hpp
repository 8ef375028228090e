// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/futex.hpp>

#include <atomic>
#include <cstdint>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// A mutex of four bytes, where `std::mutex` has forty: each held lock has two. It may be destroyed as soon as it is
/// unlocked for the last time: as with `parker`, the wake-up that may still be under way touches no memory.
/// Source: Drepper, "Futexes Are Tricky", 2011, the second mutex.
class small_mutex {
public:
    small_mutex() = default;
    small_mutex(small_mutex const&) = delete;
    small_mutex& operator=(small_mutex const&) = delete;

    void lock() noexcept
    {
        std::uint32_t seen = unlocked;
        if (word_.compare_exchange_strong(seen, locked, std::memory_order_acquire)) return;
        while (word_.exchange(awaited, std::memory_order_acquire) != unlocked) futex_wait(word_, awaited);
    }

    void unlock() noexcept
    {
        auto* const word = &word_;
        if (word_.exchange(unlocked, std::memory_order_release) == awaited) futex_wake(word);
    }

private:
    static constexpr std::uint32_t unlocked = 0;
    static constexpr std::uint32_t locked = 1;
    static constexpr std::uint32_t awaited = 2;  // locked, and others may wait

    futex_word word_{unlocked};
};

}  // namespace holdfast::detail
