// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/clock.hpp>

#include <algorithm>
#include <chrono>

namespace holdfast::redis {

/// Whether a connection on which commands are under way still lives. One answer that is late says nothing of the connection, where others came
/// meanwhile; it is given up when nothing comes any more.
class pulse {
public:
    /// Effects: a command is to be answered within `t`.
    explicit pulse(std::chrono::milliseconds t) noexcept : time_{t} {}

    /// Effects: notes that the server has answered a command, or the greeting.
    void beat(boot_clock::time_point now) noexcept { last_ = now; }

    /// Returns: whether nothing has been answered since a command was sent at `written` that is overdue. One that was sent a moment ago, as the
    /// connection was being made until then, may have its time.
    [[nodiscard]] bool silent_since(boot_clock::time_point written, boot_clock::time_point now) const noexcept
    {
        return last_ <= written && now - written > time_ / 2;
    }

    /// Returns: whether the connection is to be given up, where the first of the commands under way was sent at `written`: nothing has been
    /// answered for the time of an answer; or the answers lag so far behind that none is of use. A server that is asked for more than it can do would
    /// lag ever more.
    [[nodiscard]] bool stopped(boot_clock::time_point written, boot_clock::time_point now) const noexcept
    {
        return now - std::max(written, last_) > time_ || now - written > longest_lag * time_;
    }

private:
    static constexpr int longest_lag = 8;

    std::chrono::milliseconds time_;
    boot_clock::time_point last_{};
};

}  // namespace holdfast::redis
