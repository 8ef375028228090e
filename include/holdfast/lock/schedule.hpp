// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/timer_queue.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// What the client's thread handles: a held lease, or an asynchronous call.
class scheduled {
public:
    virtual ~scheduled() = default;

    /// Effects: does what is due at `now`, and schedules the next time. `alarmed`: leases may be lost, as if everything
    /// were due. Called by the client's thread only, with no lock held.
    virtual void on_due(boot_clock::time_point now, bool alarmed) noexcept = 0;
};

/// What the client's thread handles, and when. It has no clock, thread or lock of its own: the renewer's mutex guards
/// it. Each entry has two times: when its renewal is due, and its end, when the lease is lost.
///
/// | an entry | in the order of | left by |
/// |---|---|---|
/// | none | | put → later |
/// | later | when it is due | then → due |
/// | due | its end: the first to end is taken first, as in "earliest deadline first" | there is room for it, or its end has come: taken → none |
/// | any | | cancel → none; an alarm → due, and its end has come |
///
/// No entry waits for ever: its end comes nearer until no other end is earlier. There is more room for the first if
/// half of the time to its end has passed: answers may come from so far away that few renewals under way are not
/// enough.
/// Source: Liu and Layland, "Scheduling Algorithms for Multiprogramming in a Hard-Real-Time Environment", JACM 1973.
class schedule {
public:
    /// A place in the schedule.
    struct timer : timed {
        std::weak_ptr<scheduled> whom{};
        boot_clock::time_point end{};  ///< when due, halfway to that
        std::uint32_t alarms = 0;      ///< the number of alarms when it was last taken, canceled or prepared
        bool poked = false;            ///< it was poked since then
        enum class state : std::uint8_t { none, later, due } now = state::none;
    };

    /// Whose turn it is.
    struct turn {
        std::shared_ptr<scheduled> whom;  ///< null: no entry is due
        bool alarmed = false;             ///< because there was an alarm
    };

    /// There is room until so many renewals are under way, and again when half of them have ended: then those that
    /// begin share a few writes. If some of those under way hang, others wait a moment for that: a sixteenth of the
    /// time from when they are due to their end. Measured with 10,000 leases on five masters: with 256 under way, the
    /// p99 of another lock is 12 ms.
    static constexpr std::size_t window = 96;

    /// There is room until so many are under way if half of the time to the end of the first has passed. Measured as
    /// above, after an outage: if all are sent at once, their answers are read too late.
    static constexpr std::size_t urgent_window = 1024;

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
        end == at_once ? add(timer::state::due, t, end) : add(timer::state::later, t, std::min(due, end));
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
                one->end = at_once;
                add(timer::state::due, *one, at_once);
            }
    }

    /// Effects: takes out an entry whose turn it is at `now`, with as many renewals `under_way`: its end has come, or
    /// its renewal is due and there is room for it.
    [[nodiscard]] turn take(boot_clock::time_point now, std::size_t under_way) noexcept
    {
        full_ = full(under_way);
        while (later_.next() <= now) {
            auto& t = *first(later_);
            auto const due = t.at();
            auto const end = t.end;
            remove_from_line(t);
            t.end = due + (end - due) / 2;
            add(timer::state::due, t, end);
        }
        while (auto* const t = first(due_)) {
            if (turn_of(*t, under_way) > now) break;
            turn one{t->whom.lock(), std::exchange(t->alarms, alarms_) != alarms_};
            t->poked = false;
            remove_from_line(*t);
            if (one.whom) return one;  // otherwise its destructor waits for the mutex to cancel the timer
        }
        return {};
    }

    /// Returns: when the next turn may come if there is no new room.
    [[nodiscard]] boot_clock::time_point next(std::size_t under_way) const noexcept
    {
        auto const* const due = first(due_);
        return due ? std::min(later_.next(), turn_of(*due, under_way)) : later_.next();
    }

    static constexpr auto at_once = boot_clock::time_point{};

private:
    /// Returns: when it is the turn of `t`, the first that is due.
    [[nodiscard]] boot_clock::time_point turn_of(timer const& t, std::size_t under_way) const noexcept
    {
        if (!full(under_way)) return at_once;
        if (under_way >= urgent_window) return t.at();
        auto const half = t.at() - t.end;
        return under_way < window ? t.end - (half - half / 8) : t.end;
    }

    [[nodiscard]] bool full(std::size_t under_way) const noexcept
    {
        return full_ ? under_way > window / 2 : under_way >= window;
    }

    [[nodiscard]] static timer* first(timer_queue const& of) noexcept { return static_cast<timer*>(of.first()); }

    [[nodiscard]] timer_queue& line_of(timer::state one) noexcept { return one == timer::state::due ? due_ : later_; }

    void remove_from_line(timer& t) noexcept
    {
        if (auto const was = std::exchange(t.now, timer::state::none); was != timer::state::none)
            line_of(was).remove(t);
    }

    void add(timer::state to, timer& t, boot_clock::time_point at) noexcept
    {
        line_of(to).add(t, at);
        t.now = to;
    }

    timer_queue later_;  // sorted by when they are due
    timer_queue due_;    // sorted by their end
    bool full_ = false;  // little room, until half of those under way have ended
    std::uint32_t alarms_ = 0;
};

}  // namespace holdfast::detail
