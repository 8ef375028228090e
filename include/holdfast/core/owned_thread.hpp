// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/fork_guard.hpp>
#include <holdfast/core/signals_blocked.hpp>

#include <array>
#include <cstddef>
#include <new>
#include <thread>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// Effects: leaks the handle of a thread that does not exist in this process, a child of fork(). It can be neither
/// joined nor detached, and its handle must not be destroyed.
template <class Thread>
void leak_after_fork(Thread& one) noexcept
{
    alignas(Thread) static std::array<std::byte, sizeof(Thread)> grave;
    new (grave.data()) Thread{std::move(one)};
}

/// The system's threads, as `owned_thread` needs them. A simulated program has others.
struct system_threads {
    using thread = std::thread;
    [[nodiscard]] static thread::id here() noexcept { return std::this_thread::get_id(); }
};

/// A thread of one object, which may be destroyed by what the thread calls, and calls `end` in its destructor. It gets
/// no signals but those of its own faults.
template <class Threads = system_threads>
class owned_thread {
public:
    /// Effects: calls `f` in the thread. Throws: `std::system_error` if the system has no thread left.
    /// Requires: none was started.
    template <class F>
    void start(F f)
    {
        signals_blocked const while_starting;
        thread_ = typename Threads::thread{std::move(f)};
    }

    [[nodiscard]] bool started() const noexcept { return thread_.joinable(); }

    /// Returns: whether this process is a child of fork(), in which the thread does not exist.
    [[nodiscard]] bool in_child() const noexcept { return origin_.in_child(); }

    /// Returns: whether it is the one that calls this.
    [[nodiscard]] bool here() const noexcept { return thread_.get_id() == Threads::here(); }

    /// Effects: waits until it has ended, if it was started. One that calls this itself is left alone: what it calls
    /// must not need the object any more. In a child of fork() its handle is leaked.
    void end() noexcept
    {
        if (!started()) return;
        if (in_child())
            leak_after_fork(thread_);
        else if (here())
            thread_.detach();
        else
            thread_.join();
    }

private:
    typename Threads::thread thread_;
    fork_guard const origin_;
};

}  // namespace holdfast::detail
