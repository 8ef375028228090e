// SPDX-License-Identifier: MIT
#pragma once

#include "eventually.hpp"
#include "shared.hpp"

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>

namespace holdfast::test {

/// A forked process that cannot outlive the process that made it: it is killed by the destructor,
/// and by the kernel should the maker die first.
class child {
public:
    /// What `wait` returns when the function threw; the message went to stderr.
    static constexpr int threw = 70;

    /// Effects: runs `run` in a child, which then ends with `_exit(run())`: nothing the maker
    /// registered (atexit handlers, the test framework's reports and signal handlers, the stack's
    /// destructors) runs there. May be called from any thread; the child has only one. It may start more,
    /// except under GCC 12's ThreadSanitizer, which takes them for threads of the maker and aborts (Clang
    /// 16's does not). AddressSanitizer can leave it with a lock that a busy thread of the maker had: fork
    /// while the other threads rest, as one that has just been started does not.
    static child fork(std::function<int()> run);

    child() noexcept = default;
    child(child&& other) noexcept;
    child& operator=(child&& other) noexcept;
    ~child();

    [[nodiscard]] ::pid_t pid() const noexcept { return pid_; }
    [[nodiscard]] bool running() { return pid_ > 0 && !exit_status(); }
    [[nodiscard]] bool paused() const noexcept { return paused_; }

    /// SIGSTOP. It has stopped when this returns.
    void pause();
    /// SIGCONT.
    void resume();
    /// Returns: whether it has stopped itself, by a SIGSTOP of its own; it is `paused()` then.
    [[nodiscard]] bool stopped_itself();
    /// SIGKILL, and reaped when this returns. No effect on one that has ended.
    void kill();

    /// Returns: what the function returned, or 128 + the number of the signal that ended the child.
    int wait();
    /// Returns: the same, or nothing when the child still runs after `limit`.
    [[nodiscard]] std::optional<int> wait_for(std::chrono::milliseconds limit);
    /// Returns: the same, or nothing when the child still runs.
    [[nodiscard]] std::optional<int> exit_status();

private:
    explicit child(::pid_t pid) noexcept : pid_{pid} {}
    void reap(int options);

    ::pid_t pid_ = -1;
    bool paused_ = false;
    std::optional<int> status_;
};

}  // namespace holdfast::test
