// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/async_object.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/lease.hpp>
#include <holdfast/core/semaphore_object.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/lock/slot_sizes.hpp>
#include <holdfast/lock/slot_wait.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// One acquire of `n` permits of a semaphore, all or none: what it does next. A thread (`permit_wait`) or an
/// asynchronous call (`permit_call`) does it, and says how it has ended; one call at a time. The end of this object
/// gives back what it has.
///
/// | step | has ended with | next |
/// |---|---|---|
/// | try  | the slot | held, with `n` of them; otherwise the next permit |
/// | try  | it is held by another | the next slot; after the last one: wait |
/// | try  | it could not be asked; the deadline | wait |
/// | wait | the first slot that was free | as above |
/// | wait | a failure | try the slot that it came from, and the others: an outage may be over by now |
/// | turn | the turn | the first permit, with its wait |
/// | any | the turn is lost | gives all back, and turn |
/// | any | another number of permits is in use | gives all back, and begins again |
/// | any | a slot is refused for the number of permits | gives all back, and change |
/// | change | another number is in use | begins again |
/// | any | the time is over; a stop; another failure | gives all back; has ended |
///
/// The slots are tried one after another, beginning with the one that was taken last: so a semaphore that has free
/// permits takes one and touches no other. If none was free, all are waited for at once, and the first release calls. A
/// single attempt waits for nothing. Nor does one for several permits before it has its turn, which it takes if they
/// were too few: one caller of all clients collects slots at a time.
///
/// Why no two wait for each other: only the caller whose turn it is holds slots while it waits, and it waits for
/// holders, who wait for no slot. (One that holds permits and asks for more is outside of this.) Why a large batch has
/// its turn at all: what it has collected is not given back for smaller ones.
class permit_steps {
public:
    enum class step : std::uint8_t {
        try_slot,         ///< a single attempt at `slot()`
        wait_for_slot,    ///< a wait for each of `slots()`
        wait_for_turn,    ///< the lock `turn()`
        wait_for_change,  ///< until `slots()` are out of use; none if they are and will be in use
        ended,            ///< `take()` and `code()` say how
    };

    /// Whether what was taken in vain has been given back when the next step begins: a thread waits for that, for the
    /// last answer at least.
    enum class giving_back : std::uint8_t { waits, does_not_wait };

    permit_steps(slot_sizes& of, std::size_t n, patience const& p, std::stop_token stop, giving_back how)
        : of_{of}, n_{n}, limit_{p}, stop_{std::move(stop)}, giving_back_{how}
    {
    }
    permit_steps(permit_steps const&) = delete;
    permit_steps& operator=(permit_steps const&) = delete;
    ~permit_steps()
    {
        give_all();
        end_round();
    }

    // Each of these returns the next step. They throw what `slot_sizes::current_for` throws, and `std::bad_alloc`; then
    // it has ended.

    /// Effects: begins, with the slots of the number in use.
    [[nodiscard]] step begin()
    {
        give_all();
        code_ = {};
        begin_round();
        return next_permit();
    }

    /// A try has ended with `ec`; no error: it took the slot.
    [[nodiscard]] step tried(std::error_code ec)
    {
        if (!ec) return took(slot());
        if (stopped()) return interrupted();
        bool const refused = ec == errc::timed_out;
        if (ec == errc::unavailable)
            unavailable_ = ec;
        else if (!refused)
            return fail(ec);
        if (refused) ++refused_;
        bool const late = boot_clock::now() >= limit_.deadline;
        if (refused && ++tried_ < slots()->size() && (once_ || failure_ || !late)) return step::try_slot;
        if (failure_ && failure_ != errc::unavailable) return fail(failure_);
        if (once_ || too_early() || (failure_ && refused_ == 0)) return none();
        if (late && (unavailable_ || refused_ == slots()->size())) return none();
        return step::wait_for_slot;
    }

    /// A wait for a slot has ended so.
    [[nodiscard]] step waited(slot_wait::outcome const& so)
    {
        if (so.slot) return took(*so.slot);
        if (stopped()) return interrupted();
        if (so.code == errc::unavailable && !so.failed) return none();
        if (!so.failed) return fail(so.code);
        failure_ = so.code;
        try_from(*so.failed);
        return step::try_slot;
    }

    /// The wait for the turn has ended with `ec`; no error: it is held.
    [[nodiscard]] step in_turn(std::error_code ec)
    {
        if (ec) return stopped() ? interrupted() : fail(ec);
        turn_lease_ = turn().lease();
        at_loss_.emplace(turn_lease_.lost_token(), end{over_});
        return next_permit();
    }

    /// The wait for a change has ended with `ec`; no error: another number of permits is in use.
    [[nodiscard]] step changed(std::error_code ec)
    {
        if (!ec) return begin();
        code_ = ec;
        return step::ended;
    }

    // What the step is about.
    [[nodiscard]] slot_sizes::shared_slots const& slots() const noexcept { return in_; }
    [[nodiscard]] std::size_t slot() const noexcept { return (first_ + tried_) % in_->size(); }
    [[nodiscard]] lock_object& turn() const noexcept { return of_.turn(); }
    [[nodiscard]] patience const& limit() const noexcept { return limit_; }
    /// Returns: what ends a step of this acquire.
    [[nodiscard]] std::stop_token over() const noexcept { return over_.get_token(); }
    /// Returns: the stop that the caller may request.
    [[nodiscard]] std::stop_token const& stop() const noexcept { return stop_; }

    /// Returns: what was taken, if it has ended so, and is not given back by this any more.
    [[nodiscard]] held_slots take() noexcept { return std::exchange(taken_, {}); }
    /// Returns: why nothing was taken; no error if it was.
    [[nodiscard]] std::error_code code() const noexcept { return code_; }

private:
    struct end {
        std::stop_source of;
        void operator()() const noexcept
        {
            auto kept = of;  // what is told of the end may end this
            kept.request_stop();
        }
    };
    using ender = std::optional<std::stop_callback<end>>;

    [[nodiscard]] bool stopped() const noexcept { return over_.stop_requested(); }
    [[nodiscard]] bool collects() const noexcept { return turn_lease_ != lease{}; }
    /// Returns: whether it may not wait for slots before it has its turn.
    // mutant: permits collected without a turn
    [[nodiscard]] bool too_early() const noexcept { return n_ > 1 && !collects(); }

    /// Effects: from now on `over()` is stopped by the caller, by the end of the semaphore, or by another number of
    /// permits. Throws: `error` (`misconfigured`) if there are not as many.
    void begin_round()
    {
        end_round();
        in_ = of_.current_for(static_cast<std::ptrdiff_t>(n_));
        over_ = std::stop_source{};
        at_stop_.emplace(stop_, end{over_});
        at_change_.emplace(in_->out_of_use.get_token(), end{over_});
    }

    void end_round() noexcept
    {
        at_change_.reset();
        at_stop_.reset();
        end_turn();
    }

    void end_turn() noexcept
    {
        at_loss_.reset();
        if (collects()) turn().give_back(std::exchange(turn_lease_, {}));
    }

    void try_from(std::size_t first) noexcept
    {
        first_ = first;
        tried_ = refused_ = 0;
        unavailable_ = {};
    }

    step next_permit()
    {
        spare_.resize(1);  // before it is taken: a slot that cannot be noted would stay so
        once_ = limit_.once || boot_clock::now() >= limit_.deadline;
        failure_ = {};
        try_from(in_->first());
        return step::try_slot;
    }

    step took(std::size_t slot)
    {
        spare_.front() = {slot_sizes::lock_of(in_, slot), slot};
        taken_.splice(taken_.end(), spare_);
        in_->took(slot);
        if (of_.closed()) return interrupted();  // the end of the semaphore gave it back to this acquire
        if (n_ > 1 && taken_.size() == n_) drop_lost();
        if (taken_.size() == n_) return step::ended;
        return stopped() ? interrupted() : next_permit();
    }

    /// The slots are held by others, as far as they could be asked.
    step none()
    {
        auto const why = unavailable_ && refused_ == 0 ? unavailable_ : make_error_code(errc::timed_out);
        return once_ || !too_early() || boot_clock::now() >= limit_.deadline ? fail(why) : begin_turn();
    }

    step begin_turn()
    {
        give_all();
        if (boot_clock::now() >= limit_.deadline) return fail(make_error_code(errc::timed_out));
        begin_round();
        return step::wait_for_turn;
    }

    /// It was stopped before it had all permits: by the caller or the end of the semaphore; as another number of
    /// permits is in use; or as it has lost its turn.
    step interrupted()
    {
        if (stop_.stop_requested() || of_.closed()) return fail(std::make_error_code(std::errc::operation_canceled));
        return in_->out_of_use.stop_requested() ? begin() : begin_turn();
    }

    step fail(std::error_code ec) noexcept
    {
        give_all();  // mutant: too few permits kept
        end_turn();
        code_ = ec;
        return ec == errc::misconfigured ? step::wait_for_change : step::ended;
    }

    void drop_lost() noexcept
    {
        taken_.remove_if([](held_slot const& one) {
            if (one.lock->lease().still_held()) return false;
            one.lock->give_back(one.lock->lease());
            return true;
        });
    }

    /// Effects: gives back what was taken in vain, which is free at once, whatever its `min_hold`.
    void give_all() noexcept
    {
        for (; !taken_.empty(); taken_.pop_back()) {
            auto& one = *taken_.back().lock;
            std::error_code ignored;  // it ends with its lease
            giving_back_ == giving_back::waits&& taken_.size() == 1 ? one.unlock(ignored) : one.give_back(one.lease());
        }
    }

    slot_sizes& of_;
    std::size_t const n_;
    patience const limit_;
    std::stop_token const stop_;
    giving_back const giving_back_;
    slot_sizes::shared_slots in_;
    held_slots taken_;
    held_slots spare_;  // the place of the next one
    lease turn_lease_;  // empty: it has no turn
    std::error_code code_;

    // Of the permit that is taken now.
    bool once_ = false;  // each slot is tried once
    std::size_t first_ = 0;
    std::size_t tried_ = 0;
    std::size_t refused_ = 0;      // how many are held by others
    std::error_code unavailable_;  // why one could not be asked: nor could the others
    std::error_code failure_;      // of the wait before these tries

    std::stop_source over_{std::nostopstate};
    ender at_stop_;
    ender at_change_;
    ender at_loss_;
};

}  // namespace holdfast::detail
