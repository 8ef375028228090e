// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>

#include <algorithm>
#include <chrono>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// Tells whether a connection with pending commands is still alive. One late answer says nothing if others arrived
/// meanwhile. The connection is given up when nothing arrives any more.
class pulse {
public:
    /// Effects: a command must be answered within `t`.
    explicit pulse(std::chrono::milliseconds t) noexcept : time_{t} {}

    /// Effects: notes that the server has answered the greeting of a new connection, in `took`: it may be another
    /// server, farther away.
    void greeted(boot_clock::duration took, boot_clock::time_point now) noexcept
    {
        last_ = now;
        fastest_ = took;
    }

    /// Effects: notes that the server has answered a command sent at `written`.
    void beat(boot_clock::time_point written, boot_clock::time_point now) noexcept
    {
        last_ = now;
        fastest_ = std::min(fastest_, std::max(now - written, boot_clock::duration::zero()));
    }

    /// Returns: how long the fastest answer over this connection took; nothing like it if there was none.
    [[nodiscard]] boot_clock::duration fastest() const noexcept { return fastest_; }

    /// Returns: whether a command sent at `written` is overdue and nothing has been answered since. A command that was
    /// sent only a moment ago, because the connection had to be made first, still has its time.
    [[nodiscard]] bool silent_since(boot_clock::time_point written, boot_clock::time_point now) const noexcept
    {
        return last_ <= written && now - written > time_ / 2;
    }

    /// Returns: whether to give up the connection; `written` is when the oldest pending command was sent. True if no
    /// answer came for the time that a command has, or if the oldest command has waited for eight times as long: an
    /// overloaded server would fall behind more and more.
    [[nodiscard]] bool stopped(boot_clock::time_point written, boot_clock::time_point now) const noexcept
    {
        return now - std::max(written, last_) > time_ || now - written > longest_lag * time_;
    }

private:
    static constexpr int longest_lag = 8;

    std::chrono::milliseconds time_;
    boot_clock::time_point last_{};
    boot_clock::duration fastest_ = boot_clock::duration::max();
};

}  // namespace holdfast::redis
