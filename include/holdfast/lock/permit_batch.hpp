// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/async_object.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/joint_hold.hpp>
#include <holdfast/core/lease.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/lock/announce.hpp>
#include <holdfast/lock/permit_call.hpp>
#include <holdfast/lock/permits.hpp>
#include <holdfast/lock/slot_sizes.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// Several permits of a `semaphore`, all or none, during an asynchronous call and while a guard has them. They are
/// taken as `slot_batch` does:
///
/// | stage | event | next |
/// |---|---|---|
/// | trying | a permit | tries the next one; the last one: held |
/// | trying | none is free | gives all back, and waits for its turn; after a single attempt: failed |
/// | turn | it is granted | collecting |
/// | collecting | a permit | takes the next one; the last one: drops those that were lost; if none was, held |
/// | collecting | the turn is lost | gives all back, and waits for its turn |
/// | any | the number of permits is changed | the same; failed if they are too few |
/// | any | another failure, or a cancel | gives all back; failed |
class permit_batch final : public async_object, public std::enable_shared_from_this<permit_batch> {
public:
    /// `turn`: the lock of the caller that collects permits.
    permit_batch(std::shared_ptr<permits> of, std::shared_ptr<lock_object> turn, std::size_t n)
        : of_{std::move(of)}, turn_{std::move(turn)}, n_{n}
    {
    }

    /// What was not given back is kept: it could not be begun.
    ~permit_batch() override
    {
        if (hold_) of_->keep(std::move(slots_));
    }

    /// Effects: has the permits that `semaphore::release` would give back, if there are as many. Throws:
    /// `std::bad_alloc`.
    void take_over()
    {
        auto made = std::make_shared<joint_hold>(n_);
        auto kept = of_->let_go(n_);
        if (kept.empty()) return;
        slots_ = std::move(kept);
        for (auto const& one : slots_) static_cast<void>(made->add(one.lock->lease(), made));
        hold_ = std::move(made);
    }

    void begin_lock(patience const& p, std::stop_token stop, std::unique_ptr<async_result> told) override
    {
        limit_ = p;
        stop_ = std::move(stop);
        told_ = std::move(told);
        try {
            begin_round();
            take_next({.once = true});
        } catch (...) {
            told_ = nullptr;
            throw;
        }
    }

    void begin_unlock(holdfast::lease const& of, std::unique_ptr<async_result> told) override
    {
        if (!hold_ || of != lease() || of_->in_child())  // says `not_owner`, or that it is a child
            return any()->begin_unlock({}, std::move(told));
        auto const self = shared_from_this();
        auto const slots = slots_;  // the answers may end this
        told_ = std::move(told);
        over_ = std::move(hold_);
        over_->release();
        pending_ = slots.size();
        for (auto const& one : slots) {
            auto const mine = one.lock->lease();
            try {
                one.lock->begin_unlock(mine, result_to(self, &permit_batch::given));
            } catch (...) {
                one.lock->give_back(mine);
                given(current_exception_code(), false);
            }
        }
    }

    void give_back(holdfast::lease const& of, rest then) noexcept override
    {
        if (!hold_ || of != lease() || of_->in_child()) return;
        over_ = std::move(hold_);
        over_->release();
        for (auto const& one : slots_) one.lock->give_back(one.lock->lease(), then);
        released();
    }

    void leave() noexcept override
    {
        of_->keep(std::move(slots_));
        hold_ = nullptr;
    }
    [[nodiscard]] holdfast::lease lease() const override { return holdfast::lease{hold_}; }
    [[nodiscard]] bool closed() const noexcept override { return of_->closing().stop_requested(); }

private:
    struct cancel {
        std::stop_source of;
        void operator()() const noexcept
        {
            auto const kept = of;  // the answers may end this
            kept.request_stop();
        }
    };
    using canceller = std::optional<std::stop_callback<cancel>>;

    [[nodiscard]] std::shared_ptr<lock_object> any() const { return slot_sizes::lock_of(of_->sizes().current(), 0); }
    [[nodiscard]] bool canceled() const noexcept { return stop_.stop_requested() || closed(); }

    /// Returns: whether a round has ended with `ec` as its turn was lost, or as there is another number of permits.
    [[nodiscard]] bool interrupted(std::error_code ec) const noexcept
    {
        return ec == std::errc::operation_canceled && !canceled() && !limit_.once;
    }

    /// Effects: from now on `round_` is stopped by the user, by the end of the semaphore, or by another number of
    /// permits. Throws: `error` (`misconfigured`) if there are not as many.
    void begin_round()
    {
        end_round();
        round_ = std::stop_source{};
        auto const in = of_->sizes().current();
        in->slots.check_number(static_cast<std::ptrdiff_t>(n_));
        at_change_.emplace(in->replaced.get_token(), cancel{round_});
        at_stop_.emplace(stop_, cancel{round_});
        at_close_.emplace(of_->closing(), cancel{round_});
    }

    void end_round() noexcept
    {
        at_loss_.reset();
        at_close_.reset();
        at_stop_.reset();
        at_change_.reset();
        if (turn_lease_ == holdfast::lease{}) return;
        turn_->give_back(turn_lease_, rest::none);
        turn_lease_ = {};
    }

    void take_next(patience const& p)
    {
        taking_ = std::make_shared<one_permit>(of_);
        taking_->begin_lock(p, round_.get_token(), result_to(shared_from_this(), &permit_batch::taken));
    }

    void wait_for_turn()
    {
        give_all();
        if (boot_clock::now() >= limit_.deadline) return fail(make_error_code(errc::timed_out));
        begin_round();
        turn_->begin_lock(limit_, round_.get_token(), result_to(shared_from_this(), &permit_batch::in_turn));
    }

    /// Effects: acts on the answer of the turn.
    void in_turn(std::error_code ec, bool held) noexcept
    try {
        if (!held) return interrupted(ec) ? wait_for_turn() : fail(ec);
        turn_lease_ = turn_->lease();
        at_loss_.emplace(turn_lease_.lost_token(), cancel{round_});
        take_next(limit_);
    } catch (...) {
        fail(current_exception_code());
    }

    /// Effects: acts on the answer of the permit that was asked for.
    void taken(std::error_code ec, bool held) noexcept
    try {
        bool const collects = turn_lease_ != holdfast::lease{};
        auto const one = std::move(taking_);
        if (held) slots_.splice(slots_.end(), one->let_go());
        if (canceled()) return fail(std::make_error_code(std::errc::operation_canceled));
        if (!held && interrupted(ec)) return wait_for_turn();
        bool const none_free = ec == errc::timed_out || ec == errc::unavailable;
        if (!held) return collects || limit_.once || !none_free ? fail(ec) : wait_for_turn();
        if (slots_.size() == n_) drop_lost();
        if (slots_.size() < n_) return take_next(collects ? limit_ : patience{.once = true});
        auto const all = std::make_shared<joint_hold>(n_);
        bool all_held = true;
        for (auto const& each : slots_) all_held = all->add(each.lock->lease(), all) && all_held;
        if (!all_held) return wait_for_turn();
        hold_ = all;
        finish({}, true);
    } catch (...) {
        fail(current_exception_code());
    }

    void drop_lost() noexcept
    {
        slots_.remove_if([](held_slot const& one) {
            if (one.lock->lease().still_held()) return false;
            one.lock->give_back(one.lock->lease(), rest::none);
            return true;
        });
    }

    /// Effects: gives back what was taken in vain, which is free at once, whatever its `min_hold`.
    void give_all() noexcept
    {
        for (; !slots_.empty(); slots_.pop_back())
            slots_.back().lock->give_back(slots_.back().lock->lease(), rest::none);
    }

    void fail(std::error_code ec) noexcept
    {
        give_all();
        finish(ec, false);
    }

    /// Effects: acts on the answer to a permit that was given back.
    void given(std::error_code ec, bool /*held*/) noexcept
    {
        {
            std::scoped_lock guard{mutex_};
            if (ec && (!worst_ || ec == errc::lease_lost)) worst_ = ec;
            if (--pending_ != 0) return;
        }
        released();
        finish(worst_, false);
    }

    /// Effects: announces that one of them was lost, if so.
    void released() noexcept
    {
        if (over_->part_lost()) announce_loss(any()->calls(), *over_);
    }

    void finish(std::error_code ec, bool held) noexcept
    {
        end_round();
        deliver(any()->calls(), std::move(told_), [=](async_result& whom) { whom.deliver(ec, held); });
    }

    std::shared_ptr<permits> const of_;
    std::shared_ptr<lock_object> const turn_;
    std::size_t const n_;
    held_slots slots_;
    std::shared_ptr<joint_hold> hold_;  // null: it has none, or has left them
    std::shared_ptr<joint_hold> over_;  // is being given back
    std::shared_ptr<one_permit> taking_;
    patience limit_;
    std::stop_token stop_;
    std::stop_source round_{std::nostopstate};
    holdfast::lease turn_lease_;
    std::unique_ptr<async_result> told_;
    std::mutex mutex_;
    std::size_t pending_ = 0;  // guarded by the mutex, as the next
    std::error_code worst_;
    canceller at_stop_;
    canceller at_close_;
    canceller at_loss_;
    canceller at_change_;
};

}  // namespace holdfast::detail
