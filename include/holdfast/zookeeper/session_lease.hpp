// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/clock.hpp>
#include <holdfast/core/validity.hpp>

#include <array>
#include <algorithm>
#include <chrono>
#include <cstddef>

namespace holdfast::zookeeper {

/// Until when a session cannot have expired, whatever becomes of the servers: what its answers prove. Arithmetic only.
///
/// The leader expires a session when it has not heard of it for the timeout T. It hears of one that is connected to a follower every
/// half tick, which is T/4 at most (a T of less than two ticks is not granted). So when a quorum answers to what was sent at `s`, the
/// follower is in touch with the leader and has told it of every request that was answered T/4 before `s`: the session lives for T from
/// when the last of these was sent. An answer of the follower alone proves nothing: it may be cut off from the leader and not know it.
///
/// | event               | settled: sent at, and known to the leader | until                             |
/// |---------------------|-------------------------------------------|-----------------------------------|
/// | begin(asked)        | asked                                     | asked + lease                     |
/// | reconnected(since)  | since, where later; notes are dropped     | as before                         |
/// | answer, no quorum   | as before; the answer is noted            | as before                         |
/// | answer of a quorum  | the last note answered before sent − T/4  | min(settled + T, sent + lease)    |
/// | end                 | –                                         | never                             |
class session_lease {
public:
    /// Returns: how long a session of the timeout `t` is good for once it is confirmed: five eighths of it. A quarter is what the leader may
    /// be behind by, an eighth is the time between two requests of an idle session.
    [[nodiscard]] static constexpr std::chrono::milliseconds duration(std::chrono::milliseconds t) noexcept { return 5 * t / 8; }

    /// Returns: how often an idle session has to send something.
    [[nodiscard]] static constexpr std::chrono::milliseconds interval(std::chrono::milliseconds t) noexcept { return t / 8; }

    /// Effects: a session of `timeout` has been made, which was asked for at `asked`.
    void begin(boot_clock::time_point asked, std::chrono::milliseconds timeout) noexcept
    {
        timeout_ = timeout;
        notes_ = {};
        settled_ = asked;
        until_ = valid_until(asked, duration(timeout));
    }

    /// Effects: the session goes on over a connection that was asked for after `since`; the server has asked the leader about it.
    void reconnected(boot_clock::time_point since) noexcept
    {
        notes_ = {};
        settled_ = std::max(settled_, since);
    }

    /// Effects: what was sent at `sent` was answered at `received`; by a quorum, or by the server alone.
    void answered(boot_clock::time_point sent, boot_clock::time_point received, bool by_quorum) noexcept
    {
        if (timeout_.count() == 0) return;
        if (by_quorum) {
            for (auto const& one : notes_)
                if (one.received <= sent - timeout_ / 4) settled_ = std::max(settled_, one.sent);
            until_ = std::max(until_, std::min(settled_ + timeout_ - drift(timeout_), valid_until(sent, duration(timeout_))));
        }
        auto& oldest = *std::min_element(notes_.begin(), notes_.end(), [](note const& a, note const& b) { return a.sent < b.sent; });
        auto const& newest = *std::max_element(notes_.begin(), notes_.end(), [](note const& a, note const& b) { return a.sent < b.sent; });
        if (sent >= newest.sent + timeout_ / 16) oldest = {sent, received};
    }

    void end() noexcept { *this = {}; }

    [[nodiscard]] std::chrono::milliseconds timeout() const noexcept { return timeout_; }

    /// Returns: until when the session is known to live; `boot_clock::time_point{}` where there is none.
    [[nodiscard]] boot_clock::time_point until() const noexcept { return until_; }

private:
    struct note {
        boot_clock::time_point sent{};
        boot_clock::time_point received = boot_clock::time_point::max();
    };

    std::chrono::milliseconds timeout_{0};
    std::array<note, 8> notes_{};  // a sixteenth of the timeout apart: the last half of it
    boot_clock::time_point settled_{};
    boot_clock::time_point until_{};
};

}  // namespace holdfast::zookeeper
