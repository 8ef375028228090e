// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <ctime>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// A word on which threads of this process sleep. (`std::binary_semaphore` and `std::atomic::wait` would do, but in
/// libstdc++ 12 they spin, and then share a global table of waiters.)
using futex_word = std::atomic<std::uint32_t>;

static_assert(futex_word::is_always_lock_free && sizeof(futex_word) == 4);

/// Effects: sleeps while `word` is `value`, until it is woken, `timeout` is over, or for no reason at all. If `timeout`
/// is null, it waits without a limit.
inline void futex_wait(futex_word& word, std::uint32_t value, timespec const* timeout = nullptr) noexcept
{
    ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, timeout, nullptr, 0);
}

/// Effects: wakes one thread that sleeps on `word`, which may be gone: its memory is not touched.
inline void futex_wake(futex_word* word) noexcept
{
    ::syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace holdfast::detail
