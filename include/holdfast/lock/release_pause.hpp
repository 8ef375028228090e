// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// When a client may ask again for a lock that it has given back to the store. Without a pause, a process with many
/// threads, or one that locks again at once, shuts the others out. Arithmetic only; guarded by the queue's mutex,
/// except `others_wait`.
///
/// | who else may want the lock | the pause after a release |
/// |---|---|
/// | another client is known to wait | twice the time that the release took, at most 100 ms: that client has to hear of the release, and to ask |
/// | no client is known to wait | none; after 100 ms of use a twentieth of that time, so 5 ms; after a second or more 50 ms |
///
/// The second row is for clients that only poll, and so are not seen to wait. Use is the time since the lock was last
/// left free for 5 ms, or was another client's: where it changes hands, those who poll find it free, too. They find it
/// so less often, the longer it is held each time: a client that waits again after it has held it for a second in all,
/// of times of 10 ms or more, leaves it free for 20 ms when it is called. Its reservation is longer than that.
///
/// An attempt without time for the pause may be made all the same, but not twice in a row: a client that never has the
/// time keeps every second pause. In this rule the pause for pollers counts for at most 5 ms.
class release_pause {
public:
    static constexpr std::chrono::milliseconds least_for_pollers{5};
    static constexpr std::chrono::milliseconds most_for_pollers{50};
    static constexpr std::chrono::milliseconds most_for_waiters{100};
    static constexpr std::chrono::milliseconds least_of_long_use{10};
    static constexpr std::chrono::milliseconds when_called_for_pollers{20};

    /// Effects: notes that the lock was given back, at `now`.
    void released(boot_clock::time_point now) noexcept
    {
        released_at_ = now;
        auto const used = now - std::exchange(held_since_, now);
        if (used >= least_of_long_use) long_use_ += used;
    }

    /// Effects: notes that the answer to a release, which took from `begun` to `now`, says that others wait. May be
    /// called without the mutex: the thread that brings the answer may hold the mutex of this queue, or of another one.
    void others_wait(boot_clock::time_point begun, boot_clock::time_point now) noexcept
    {
        waiters_until_.store(now + std::min<boot_clock::duration>(2 * (now - begun), most_for_waiters),
                             std::memory_order_relaxed);
    }

    /// Effects: notes that the store has granted the lock to this client: between `earliest` and `now`.
    void granted(boot_clock::time_point earliest, boot_clock::time_point now) noexcept
    {
        if (earliest - released_at_ >= least_for_pollers) in_use_since_ = now;
        held_since_ = now;
    }

    /// Effects: the same, after another client had the lock, or was called.
    void taken_over(boot_clock::time_point now) noexcept
    {
        in_use_since_ = held_since_ = now;
        if (when_called().count() != 0) long_use_ = {};
    }

    /// Returns: for how long a waiter that is about to ask leaves the lock free when it is called.
    [[nodiscard]] boot_clock::duration when_called() const noexcept
    {
        bool const owed = long_use_ >= std::chrono::seconds{1};
        return owed ? boot_clock::duration{when_called_for_pollers} : boot_clock::duration::zero();
    }

    /// Returns: when the store may be asked for the lock; a time in the past if at once.
    [[nodiscard]] boot_clock::time_point ask_at() const noexcept
    {
        return std::max(waiters_until(), released_at_ + owed_to_pollers());
    }

    /// Effects: notes that a waiter wants to ask at `now`, and has time until `deadline`. Returns: whether it may ask.
    [[nodiscard]] bool may_ask(boot_clock::time_point now,
                               boot_clock::time_point deadline = boot_clock::time_point::min()) noexcept
    {
        bool const early =
            now < std::max(waiters_until(),
                           released_at_ + std::min<boot_clock::duration>(owed_to_pollers(), least_for_pollers));
        bool const refused = early && put_off_;
        put_off_ = early;
        return !refused || now < deadline;
    }

private:
    [[nodiscard]] boot_clock::time_point waiters_until() const noexcept
    {
        return waiters_until_.load(std::memory_order_relaxed);
    }

    [[nodiscard]] boot_clock::duration owed_to_pollers() const noexcept
    {
        auto const owed = std::min<boot_clock::duration>((released_at_ - in_use_since_) / 20, most_for_pollers);
        return owed >= least_for_pollers ? owed : boot_clock::duration::zero();
    }

    boot_clock::time_point released_at_{};
    std::atomic<boot_clock::time_point> waiters_until_{boot_clock::time_point{}};
    boot_clock::time_point in_use_since_{};
    boot_clock::time_point held_since_{};
    boot_clock::duration long_use_{};  // since it last left the lock free when it was called
    bool put_off_ = false;  // the last attempt came before the pause was over
};

}  // namespace holdfast::detail
