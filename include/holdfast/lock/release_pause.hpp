// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/clock.hpp>

#include <algorithm>
#include <chrono>

namespace holdfast::detail {

/// When a client may ask again for a lock that it has given back to the store. Without a pause a process with many threads, or one that locks
/// again at once, shuts the others out. Arithmetic only; guarded by the queue's mutex.
///
/// | who else may want it             | the pause after a release |
/// |----------------------------------|---------------------------|
/// | another client is known to wait  | twice the time that the release took, at most 100 ms: it has to hear of it, and to ask |
/// | nobody waits, as far as is known | none; after 100 ms of use a twentieth of them, thus 5 ms; after a second and more 50 ms |
///
/// The latter is for clients that only poll, of which nobody knows. Use is the time since the lock was last left free for 5 ms.
///
/// An attempt that has no time for the pause may be made all the same, but not two of them one after the other: who never has the time
/// keeps every other pause. Those who poll are content with 5 ms of theirs.
class release_pause {
public:
    static constexpr std::chrono::milliseconds least_for_pollers{5};
    static constexpr std::chrono::milliseconds most_for_pollers{50};
    static constexpr std::chrono::milliseconds most_for_waiters{100};

    /// Effects: notes that the lock was given back, by a release from `begun` to `now`; `others_wait`, as far as is known.
    void released(boot_clock::time_point begun, boot_clock::time_point now, bool others_wait) noexcept
    {
        released_at_ = now;
        if (others_wait) waiters_until_ = now + std::min<boot_clock::duration>(2 * (now - begun), most_for_waiters);
    }

    /// Effects: notes that the store has granted the lock to this client.
    void granted(boot_clock::time_point now) noexcept
    {
        if (now - released_at_ >= least_for_pollers) in_use_since_ = now;
    }

    /// Returns: when the store may be asked for it; long ago where that is at once.
    [[nodiscard]] boot_clock::time_point ask_at() const noexcept { return std::max(waiters_until_, released_at_ + owed_to_pollers()); }

    /// Effects: notes that somebody wants to ask at `now`, and has time until `deadline`. Returns: whether it may.
    [[nodiscard]] bool may_ask(boot_clock::time_point now, boot_clock::time_point deadline = boot_clock::time_point::min()) noexcept
    {
        bool const early =
            now < std::max(waiters_until_, released_at_ + std::min<boot_clock::duration>(owed_to_pollers(), least_for_pollers));
        bool const refused = early && put_off_;
        put_off_ = early;
        return !refused || now < deadline;
    }

private:
    [[nodiscard]] boot_clock::duration owed_to_pollers() const noexcept
    {
        auto const owed = std::min<boot_clock::duration>((released_at_ - in_use_since_) / 20, most_for_pollers);
        return owed >= least_for_pollers ? owed : boot_clock::duration::zero();
    }

    boot_clock::time_point released_at_{};
    boot_clock::time_point waiters_until_{};
    boot_clock::time_point in_use_since_{};
    bool put_off_ = false;  // by the last who asked
};

}  // namespace holdfast::detail
