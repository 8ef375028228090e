// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/acquire_limits.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/linked_line.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/lock/outage.hpp>
#include <holdfast/lock/release_pause.hpp>
#include <holdfast/lock/waiter.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// Whose turn it is among the waiters of this process for one lock: first come, first served. It has no clock, I/O or
/// lock of its own: the queue's mutex guards it.
///
/// | state | meaning | left by |
/// |---|---|---|
/// | idle | no waiter here has the lock or asks for it | a waiter comes → asking |
/// | asking | the first waiter asks the store, after the pause for other clients; the rest wait | granted → held; failed → asking for the next, or idle |
/// | held | one here has it | handed on → held; given back → releasing; lost → asking for the next, or idle |
/// | releasing | it is given back, and no waiter asks before the answer | answered → asking for the next, or idle |
class turns {
public:
    enum class state : std::uint8_t { idle, asking, held, releasing };

    [[nodiscard]] state now() const noexcept { return state_; }

    /// Returns: whether `one` would be the first to ask: no other waiter can go on.
    [[nodiscard]] bool is_first(waiter const& one) const noexcept { return state_ == state::idle && !one.owner->held; }

    /// Effects: handles the arrival of `one`.
    void enter(waiter& one) noexcept
    {
        if (is_first(one)) {
            one.now = waiter::stage::first;
            take(one);
        } else if (one.limit.once && (!one.limit.until_decided || another_has_it())) {
            end(one);
        } else {
            one.was_in_line = true;
            ++one.owner->in_line;
            line_.add(one);
        }
    }

    /// Effects: `one`, which is in line, leaves.
    void give_up(waiter& one) noexcept
    {
        leave(one);
        end(one);
    }

    /// Returns: when `one`, whose turn it is, may ask the store, if that is after `now`.
    [[nodiscard]] std::optional<boot_clock::time_point> pause(waiter& one, boot_clock::time_point now) noexcept
    {
        if (!std::exchange(one.paused, true)) {
            one.late = one.was_in_line && now >= one.limit.deadline;
            if (!one.limit.beside) one.ask_at = std::min(pause_.ask_at(), one.limit.may_wait_until());
        }
        if (one.late || one.canceled || now >= one.ask_at) return std::nullopt;
        return one.ask_at;
    }

    /// Returns: whether `one`, whose pause is over, may ask; otherwise it has ended.
    [[nodiscard]] bool may_ask(waiter& one, boot_clock::time_point now) noexcept
    {
        bool const may_ask = one.limit.beside || pause_.may_ask(now, one.limit.may_wait_until());
        if (!one.late && !one.canceled && may_ask) return true;
        end(one);
        return false;
    }

    /// Returns: since when the store has been unavailable, as far as `one` has seen.
    [[nodiscard]] boot_clock::time_point unavailable_since(waiter const& one) const noexcept
    {
        return outage_.seen_by(one);
    }

    /// Returns: since when `one`, which is about to ask, has its place among other clients. The waiters of this one
    /// take one place in turn until one of them gets the lock, but none has a place from before it came.
    [[nodiscard]] boot_clock::time_point place_of(waiter const& one, boot_clock::time_point now) noexcept
    {
        place_since_ = std::min(place_since_, now);
        return std::max(place_since_, one.since);
    }

    /// Returns: how long one that is about to ask leaves the lock free when it is called.
    [[nodiscard]] boot_clock::duration leaves_free() const noexcept { return pause_.when_called(); }

    /// Effects: notes the outcome of the request of `one`; if it got the lock, that was granted between `earliest` and
    /// `now`.
    void asked(waiter const& one, std::error_code outcome, boot_clock::time_point earliest,
               boot_clock::time_point now) noexcept
    {
        outage_.note(outcome, one);
        if (outcome) return;
        place_since_ = boot_clock::time_point::max();
        one.had_to_wait ? pause_.taken_over(now) : pause_.granted(earliest, now);
        asks_ = nullptr;
        state_ = state::held;
    }

    /// Effects: the lock is about to be given back.
    void release() noexcept { state_ = state::releasing; }

    /// Effects: notes that the lock was given back, at `now`.
    void released(boot_clock::time_point now) noexcept { pause_.released(now); }

    /// Effects: notes that the answer to a release, which took from `begun` to `now`, says that others wait. May be
    /// called without the mutex.
    void others_wait(boot_clock::time_point begun, boot_clock::time_point now) noexcept
    {
        pause_.others_wait(begun, now);
    }

    /// Effects: notes that no waiter here has the lock or asks for it, and gives the turn to the next. Returns: that
    /// one, which must be signalled; null if there is none.
    [[nodiscard]] waiter* pass_on() noexcept
    {
        asks_ = nullptr;
        state_ = state::idle;
        auto* const one = next();
        if (!one) {
            place_since_ = boot_clock::time_point::max();
            return nullptr;
        }
        choose(*one, waiter::stage::first);
        take(*one);
        return one;
    }

    /// Returns: the next in line: the first one whose object is not occupied, and that was not cancelled; null if there
    /// is none.
    [[nodiscard]] waiter* next() const noexcept
    {
        auto* one = line_.first();
        while (one && (one->owner->held || one->canceled)) one = one->next;
        return one;
    }

    /// Effects: hands the lock on to `one`, which is in line, and must be signalled.
    void hand_on(waiter& one) noexcept
    {
        one.handed_on = true;
        choose(one, waiter::stage::granted);
    }

    /// Effects: calls `f` with each waiter of `owner` that has not ended. If it has none, the line is not looked at: a
    /// program may make and destroy an object for each section.
    template <class F>
    void for_each_of(mutex_state const& owner, F const& f) const
    {
        auto const of_owner = [&](waiter& one) {
            if (one.owner == &owner) f(one);
        };
        if (owner.in_line != 0) line_.for_each(of_owner);
        if (asks_) of_owner(*asks_);
    }

private:
    /// Effects: gives the turn to `one`, which leaves the line, and must be signalled (`its_turn`) once.
    void choose(waiter& one, waiter::stage as) noexcept
    {
        leave(one);
        one.now = as;
    }

    void leave(waiter& one) noexcept
    {
        --one.owner->in_line;
        line_.remove(one);
    }

    void take(waiter& one) noexcept
    {
        state_ = state::asking;
        asks_ = &one;
        outage_.asked_by(one);
    }

    /// Returns: whether the lock is held, here or by another client, as far as the waiter whose turn it is knows.
    [[nodiscard]] bool another_has_it() const noexcept
    {
        bool const waits = state_ == state::asking && asks_ && !asks_->limit.once;
        return state_ == state::held || (waits && asks_->unavailable() == false);
    }

    /// Effects: ends `one` without the lock: it was cancelled; the store was unavailable all the time, or it was to be
    /// decided and is not; or its time is over.
    void end(waiter& one) noexcept
    {
        bool const in_outage = state_ == state::asking && asks_ && outage_.is_all_for(one, *asks_);
        bool const never_asked = in_outage || (one.limit.until_decided && !another_has_it());
        one.why_not = failure{one.canceled ? std::make_error_code(std::errc::operation_canceled)
                                           : acquire_limits::when_over(!never_asked),
                              {}};
        one.now = waiter::stage::ended;
    }

    linked_line<waiter> line_;
    waiter* asks_ = nullptr;                                              // whose turn it is, while the state is asking
    boot_clock::time_point place_since_ = boot_clock::time_point::max();  // max: there is no place
    [[no_unique_address]] release_pause pause_;
    state state_ = state::idle;
    [[no_unique_address]] outage outage_;
};

}  // namespace holdfast::detail
