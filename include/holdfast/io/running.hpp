// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/ended_operations.hpp>
#include <holdfast/core/timer_queue.hpp>

#include <utility>

namespace holdfast::inline HOLDFAST_ABI::io {

/// An operation as a reactor sees it: it has a timer, and its end calls a completion. Members are called with the
/// reactor's lock held.
class running : public holdfast::detail::ending, public holdfast::detail::timed {
public:
    /// Returns: when `on_time` is due; `time_point::max()` for never.
    [[nodiscard]] virtual boot_clock::time_point wake_at() const noexcept = 0;
    virtual void on_time(boot_clock::time_point now) noexcept = 0;

protected:
    virtual ~running() = default;

private:
    friend class timers;
    bool queued_ = false;
};

/// Running operations in the order of their timers. Guarded by the reactor's lock.
class timers {
public:
    /// Effects: calls `one` at its `wake_at()`, in place of the time before.
    void put(running& one) noexcept
    {
        auto const at = one.wake_at();
        if (one.queued_ && one.at() == at) return;
        remove(one);
        if (at == boot_clock::time_point::max()) return;
        queue_.add(one, at);
        one.queued_ = true;
    }

    void remove(running& one) noexcept
    {
        if (std::exchange(one.queued_, false)) queue_.remove(one);
    }

    /// Returns: when the next one is due.
    [[nodiscard]] boot_clock::time_point next() const noexcept { return queue_.next(); }

    /// Effects: calls those that are due.
    void run(boot_clock::time_point now) noexcept
    {
        while (next() <= now) {
            auto& one = static_cast<running&>(*queue_.first());
            remove(one);
            one.on_time(now);
        }
    }

private:
    holdfast::detail::timer_queue queue_;
};

}  // namespace holdfast::io
