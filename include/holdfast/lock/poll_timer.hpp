// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/fork_guard.hpp>

#include <poll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// A timer whose descriptor a thread can poll. It also runs while the machine is suspended. A forked child has the same
/// timer: what it does has no effect, as its parent would be woken.
class poll_timer {
public:
    static constexpr auto never = boot_clock::time_point::max();

    poll_timer() = default;
    poll_timer(poll_timer const&) = delete;
    poll_timer& operator=(poll_timer const&) = delete;
    ~poll_timer()
    {
        if (descriptor_ >= 0) ::close(descriptor_);
    }

    /// Effects: opens it, if it is not open. Returns: whether it is now; otherwise `errno` says why not.
    [[nodiscard]] bool open() noexcept
    {
        return descriptor_ >= 0 || (descriptor_ = ::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK)) >= 0;
    }

    [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

    /// Returns: for when it is set; `never` at first.
    [[nodiscard]] boot_clock::time_point at() const noexcept { return at_; }

    /// Effects: lets the descriptor become readable at `due`, and not before; no effect if it is not open.
    void set(boot_clock::time_point due) noexcept
    {
        if (due == at_ || descriptor_ < 0 || origin_.in_child()) return;
        at_ = due;
        auto const at = std::max(due.time_since_epoch(), boot_clock::duration{1});
        auto const whole = std::chrono::duration_cast<std::chrono::seconds>(at);
        itimerspec spec{};
        if (due != never) spec.it_value = {.tv_sec = whole.count(), .tv_nsec = (at - whole).count()};
        ::timerfd_settime(descriptor_, TFD_TIMER_ABSTIME, &spec, nullptr);
    }

    /// Effects: waits until it is readable. Returns: whether it is.
    [[nodiscard]] bool wait() const noexcept
    {
        pollfd one{.fd = descriptor_, .events = POLLIN, .revents = 0};
        return ::poll(&one, 1, -1) > 0;
    }

    /// Effects: notes that it was readable, for whatever reason: it stays so until `set` is called next.
    void fired() noexcept { at_ = boot_clock::time_point::min(); }

private:
    int descriptor_ = -1;
    boot_clock::time_point at_ = never;
    fork_guard const origin_;
};

}  // namespace holdfast::detail
