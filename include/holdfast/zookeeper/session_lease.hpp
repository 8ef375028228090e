// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/validity.hpp>

#include <algorithm>
#include <array>
#include <chrono>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// Until when a session of timeout T cannot have expired, whatever happens to the servers: what its answers prove.
/// Arithmetic only. The leader learns every T/4 at most which sessions a follower has heard of; a write that it decides
/// on is no word of a session. Why the table holds, and what it assumes: docs/proofs.md, "A ZooKeeper session".
///
/// | event | settled: sent at, and known to the leader | until |
/// |---|---|---|
/// | begin(asked) | asked | asked + lease |
/// | reconnected(since, t) | since, if later; notes and words are dropped; T is t from now on, if that is less | as before |
/// | answer, no quorum | as before; the answer is noted | as before |
/// | answer of a quorum | the last word answered before sent; its own word, the last note answered before sent − T/4, is kept | min(settled + T, sent + lease) |
/// | end | – | never |
class session_lease {
public:
    /// Returns: how long a session of the timeout `t` is good for once it is confirmed: half of it; see
    /// docs/proofs.md.
    [[nodiscard]] static constexpr std::chrono::milliseconds duration(std::chrono::milliseconds t) noexcept
    {
        return t / 2;
    }

    /// Returns: the interval at which a session must send something, and have a quorum answer if it holds locks. It is
    /// that of the renewals of a lease of `duration`, which do it.
    [[nodiscard]] static constexpr std::chrono::milliseconds interval(std::chrono::milliseconds t) noexcept
    {
        return t / 6;
    }

    /// Effects: a session of `timeout` was made; it was asked for at `asked`.
    void begin(boot_clock::time_point asked, std::chrono::milliseconds timeout) noexcept
    {
        timeout_ = timeout;
        notes_ = words_ = {};
        settled_ = asked;
        until_ = valid_until(asked, duration(timeout));
    }

    /// Effects: the session goes on over a connection that was asked for after `since`, to a server that grants it
    /// `timeout` from then on, and has asked the leader about it. Requires: that is no less than `duration` of the
    /// timeout before.
    void reconnected(boot_clock::time_point since, std::chrono::milliseconds timeout) noexcept
    {
        timeout_ = std::min(timeout_, timeout);
        notes_ = words_ = {};
        settled_ = std::max(settled_, since);
    }

    /// Effects: what was sent at `sent` was answered at `received`; by a quorum, or by the server alone.
    void answered(boot_clock::time_point sent, boot_clock::time_point received, bool by_quorum) noexcept
    {
        if (timeout_.count() == 0) return;
        if (by_quorum) last_word_ = std::max(last_word_, sent);
        if (by_quorum) {                    // mutant: a follower's word taken for a quorum's
            for (auto const& one : words_)  // mutant: a write taken for word of its session
                if (one.received <= sent) settled_ = std::max(settled_, one.proves);
            auto const least = valid_until(sent, duration(timeout_));
            // mutant: a session counted on for twice its timeout
            until_ = std::max(until_, std::min(settled_ + timeout_ - drift(timeout_), least));
            boot_clock::time_point known{};
            for (auto const& one : notes_)
                // mutant: a leader that knows at once whom a follower heard of
                if (one.received <= sent - timeout_ / 4) known = std::max(known, one.proves);
            keep(words_, {sent, received, known});
        }
        keep(notes_, {sent, received, sent});
    }

    void end() noexcept { *this = {}; }

    [[nodiscard]] std::chrono::milliseconds timeout() const noexcept { return timeout_; }

    /// Returns: until when the session is known to live; `boot_clock::time_point{}` if there is none.
    [[nodiscard]] boot_clock::time_point until() const noexcept { return until_; }

    /// Returns: when the last of what a quorum has answered was sent.
    [[nodiscard]] boot_clock::time_point last_word() const noexcept { return last_word_; }

private:
    /// What an answer says.
    struct note {
        boot_clock::time_point sent{};
        boot_clock::time_point received = boot_clock::time_point::max();
        boot_clock::time_point proves{};  ///< the session had been heard of by then
    };
    using notes = std::array<note, 8>;  // a sixteenth of the timeout apart: the last half of it

    /// Effects: keeps `n` in place of the oldest, unless the newest is as good.
    void keep(notes& all, note const& n) const noexcept
    {
        auto const earlier = [](note const& a, note const& b) { return a.sent < b.sent; };
        if (n.sent < std::max_element(all.begin(), all.end(), earlier)->sent + timeout_ / 16) return;
        *std::min_element(all.begin(), all.end(), earlier) = n;
    }

    std::chrono::milliseconds timeout_{0};
    notes notes_{};
    notes words_{};  // of a quorum
    boot_clock::time_point settled_{};
    boot_clock::time_point until_{};
    boot_clock::time_point last_word_{};
};

}  // namespace holdfast::zookeeper
