// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <new>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// One for the program, even if its shared libraries hide their names.
[[gnu::visibility("default")]] inline std::atomic<std::uint32_t> forks_since_start{0};

/// Remembers the process in which it was made. A child of `fork` has copies of its parent's locks, but no thread to
/// keep them and no right to release them: what it does with them must have no effect on the parent's.
class fork_guard {
public:
    /// Throws: `std::bad_alloc`.
    fork_guard() : made_in_{watched()} {}

    /// Returns: whether this process is a child forked from the one that made this object.
    [[nodiscard]] bool in_child() const noexcept
    {
        return forks_since_start.load(std::memory_order_relaxed) != made_in_;
    }

private:
    /// Returns: the number of forks since the first call.
    static std::uint32_t watched()
    {
        [[maybe_unused]] static bool const counted = [] {
            auto const count = [] { forks_since_start.fetch_add(1, std::memory_order_relaxed); };
            if (::pthread_atfork(nullptr, nullptr, count) != 0) throw std::bad_alloc{};  // the next call tries again
            return true;
        }();
        return forks_since_start.load(std::memory_order_relaxed);
    }

    std::uint32_t made_in_;
};

}  // namespace holdfast::detail
