// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/signals_blocked.hpp>

#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

namespace holdfast::zookeeper {

/// Returns: whether the system has `Count` more threads for this process: it starts as many at a time, and ends them. The C client starts
/// its threads with an assertion that ends the program where one is not to be had.
template <std::size_t Count>
[[nodiscard]] bool has_spare_threads() noexcept
{
    holdfast::detail::signals_blocked const while_starting;
    std::array<long, Count> ids{};
    bool all = true;
    {
        std::mutex started;
        std::array<std::optional<std::jthread>, Count> threads;
        // cppcheck-suppress localMutex ; the threads have it, too
        std::scoped_lock const guard{started};  // let go of before they are joined
        try {
            for (std::size_t i = 0; i < Count; ++i)
                threads[i].emplace([&started, &id = ids[i]] {
                    id = ::syscall(SYS_gettid);
                    std::scoped_lock const wait{started};
                });
        } catch (std::exception const&) {
            all = false;
        }
    }
    // A thread that was joined counts for a moment more, until the system does not know it any longer.
    for (auto const id : ids)
        for (int tries = 0; id != 0 && tries < 1'000 && ::syscall(SYS_tgkill, ::getpid(), id, 0) == 0; ++tries)
            std::this_thread::sleep_for(std::chrono::microseconds{100});
    return all;
}

}  // namespace holdfast::zookeeper
