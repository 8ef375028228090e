// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/timer_queue.hpp>
#include <holdfast/lock/scheduled.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// What the client's thread handles, and when. It has no clock, thread or lock of its own: the renewer's mutex guards
/// it. Each entry has two times: when its renewal is due, and its end, when the lease is lost.
///
/// | an entry | in the order of | left by |
/// |----------|-----------------|---------|
/// | none     |                 | put → later |
/// | later    | when it is due  | then → due |
/// | due      | its end: the first to end is taken first, as in "earliest deadline first" | there is room, or its end has come: taken → none |
/// | any      |                 | cancel → none; an alarm → due, and its end has come |
///
/// No entry waits for ever if there is room now and then: its end comes nearer until no other end is earlier.
/// Source: Liu and Layland, "Scheduling Algorithms for Multiprogramming in a Hard-Real-Time Environment", JACM 1973.
class schedule {
public:
    /// A place in the schedule.
    struct timer : timed {
        std::weak_ptr<scheduled> whom{};
        boot_clock::time_point end{};
        timer_queue* in = nullptr;
        std::uint64_t alarms = 0;  ///< the number of alarms when it was last taken, canceled or prepared
        bool poked = false;        ///< it was poked since then
    };

    /// Whose turn it is.
    struct turn {
        std::shared_ptr<scheduled> whom;  ///< null: no entry is due
        bool alarmed = false;        ///< because there was an alarm
    };

    schedule() = default;
    schedule(schedule const&) = delete;
    schedule& operator=(schedule const&) = delete;

    /// Effects: sets the renewal of `t` to `due` and its end to `end`, in place of earlier times. Both are at once if
    /// an alarm was raised, or `t` was poked, since it was last taken.
    void put(timer& t, boot_clock::time_point due, boot_clock::time_point end) noexcept
    {
        if (t.alarms != alarms_ || t.poked) due = end = at_once;
        remove_from_line(t);
        t.end = end;
        add(later_, t, std::min(due, end));
    }

    /// Effects: takes `t` out, unless it was poked.
    void cancel(timer& t) noexcept
    {
        t.alarms = alarms_;
        if (!t.poked) remove_from_line(t);
    }

    /// Effects: takes `t` out for good.
    void remove(timer& t) noexcept
    {
        t.poked = false;
        cancel(t);
    }

    /// Effects: makes it the turn of `t` at once, whatever is scheduled for it meanwhile.
    void poke(timer& t) noexcept
    {
        t.poked = true;
        put(t, at_once, at_once);
    }

    /// Effects: makes the end of every entry due at once.
    void alarm() noexcept
    {
        ++alarms_;
        timer_queue all;
        std::swap(all, due_);
        for (auto* some : {&all, &later_})
            while (auto* const one = first(*some)) {
                some->remove(*one);
                one->in = nullptr;
                add_with_end(*one, at_once);
            }
    }

    /// Effects: takes out an entry whose turn it is at `now`: its end has come, or, if there is `room` for a renewal,
    /// its renewal is due.
    [[nodiscard]] turn take(boot_clock::time_point now, bool room) noexcept
    {
        while (later_.next() <= now) {
            auto& t = *first(later_);
            remove_from_line(t);
            add_with_end(t, t.end);
        }
        while (auto* const t = first(due_)) {
            if (!room && t->at() > now) break;
            turn one{t->whom.lock(), std::exchange(t->alarms, alarms_) != alarms_};
            t->poked = false;
            remove_from_line(*t);
            if (one.whom) return one;  // otherwise its destructor waits for the mutex to cancel the timer
        }
        return {};
    }

    /// Returns: when the next turn may come if there is no new room.
    [[nodiscard]] boot_clock::time_point next() const noexcept { return std::min(later_.next(), due_.next()); }

    static constexpr auto at_once = boot_clock::time_point{};

private:
    [[nodiscard]] static timer* first(timer_queue const& of) noexcept { return static_cast<timer*>(of.first()); }

    static void remove_from_line(timer& t) noexcept
    {
        if (t.in) std::exchange(t.in, nullptr)->remove(t);
    }

    static void add(timer_queue& to, timer& t, boot_clock::time_point at) noexcept
    {
        to.add(t, at);
        t.in = &to;
    }

    void add_with_end(timer& t, boot_clock::time_point end) noexcept
    {
        t.end = end;
        add(due_, t, end);
    }

    timer_queue later_;  // sorted by when they are due
    timer_queue due_;    // sorted by their end
    std::uint64_t alarms_ = 0;
};

}  // namespace holdfast::detail
