// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/async_object.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/joint_hold.hpp>
#include <holdfast/core/joint_release.hpp>
#include <holdfast/core/lease.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/core/semaphore_object.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/lock/announce.hpp>
#include <holdfast/lock/permit_steps.hpp>
#include <holdfast/lock/slot_sizes.hpp>
#include <holdfast/lock/slot_wait.hpp>

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// Permits of a semaphore, during an asynchronous call and while a guard has them: the hold of one is its lock's, that
/// of several a joint one. The call does what `permit_steps` says: first in the calling thread, then in the client's
/// own, in the one that ends a change of the number of permits, or in the one that requests a stop. It has no timer of
/// its own: while it waits for such a change, the deadline is not looked at.
class permit_call final : public async_object, public std::enable_shared_from_this<permit_call> {
public:
    /// `sizes`: of the semaphore `of`.
    permit_call(std::shared_ptr<semaphore_object> of, slot_sizes& sizes, std::size_t n)
        : of_{std::move(of)}, sizes_{sizes}, n_{n}
    {
    }

    /// What was not given back is kept: it could not be begun.
    ~permit_call() override
    {
        if (hold_) of_->keep(std::move(slots_));
    }

    void begin_lock(patience const& p, std::stop_token stop, std::unique_ptr<async_result> told) override
    {
        told_ = std::move(told);
        try {
            made_ = std::make_shared<joint_hold>(n_);
            steps_.emplace(sizes_, n_, p, std::move(stop), permit_steps::giving_back::does_not_wait);
            follow(steps_->begin());
        } catch (...) {
            steps_.reset();
            told_ = nullptr;
            throw;
        }
    }

    /// Effects: has the permits that `semaphore::release` would give back, if there are as many. Throws:
    /// `std::bad_alloc`.
    void take_over()
    {
        made_ = std::make_shared<joint_hold>(n_);
        has(of_->let_go(n_));
    }

    void begin_unlock(holdfast::lease const& hold, std::unique_ptr<async_result> told) override
    {
        if (!hold_ || hold != lease() || sizes_.in_child())  // says `not_owner`, or that it is a child
            return any()->begin_unlock({}, std::move(told));
        auto const all = std::make_shared<joint_release>([self = shared_from_this()](std::error_code ec, lock_object&) {
            self->released();
            self->tell(std::move(self->told_), ec, false);
        });
        for (auto const& one : slots_) all->add(one.lock, one.lock->lease());
        told_ = std::move(told);
        over_ = std::move(hold_);
        over_->release();
        all->begin();
    }

    void give_back(holdfast::lease const& hold) noexcept override
    {
        if (!hold_ || hold != lease() || sizes_.in_child()) return;
        over_ = std::move(hold_);
        over_->release();
        for (auto const& one : slots_) one.lock->give_back(one.lock->lease());
        released();
    }

    void begin_use() noexcept override
    {
        for (auto const& one : slots_) one.lock->begin_use();
    }

    void leave() noexcept override
    {
        of_->keep(std::move(slots_));
        hold_ = nullptr;
    }
    [[nodiscard]] holdfast::lease lease() const override
    {
        return hold_ && n_ == 1 ? slots_.front().lock->lease() : holdfast::lease{hold_};
    }
    [[nodiscard]] bool closed() const noexcept override { return sizes_.closed(); }

private:
    /// Effects: has `some`, if there are any.
    void has(held_slots some) noexcept
    {
        auto const made = std::move(made_);
        if (some.empty()) return;
        slots_ = std::move(some);
        for (auto const& one : slots_) made->add(one.lock->lease(), made);
        if (!made->still_held()) made->lose();
        hold_ = made;
    }

    /// Effects: announces that one of them was lost, if so.
    void released() noexcept
    {
        if (over_->part_lost()) announce_loss(any()->calls(), *over_);
    }

    /// Returns: any lock of the semaphore. Throws: `error` in a child of `fork`.
    [[nodiscard]] std::shared_ptr<lock_object> any() const { return slot_sizes::lock_of(sizes_.current(), 0); }

    void tell(std::unique_ptr<async_result> told, std::error_code ec, bool held) noexcept
    {
        deliver(any()->calls(), std::move(told), ec, held);
    }

    using step = permit_steps::step;

    struct cancel {
        std::shared_ptr<slot_wait> of;
        void operator()() const noexcept
        {
            auto const kept = of;  // the call may go on from here, without this
            kept->cancel();
        }
    };

    /// Ends a call that waits for the end of a change, in the thread that requests the stop.
    struct abandon {
        std::weak_ptr<permit_call> of;
        std::shared_ptr<std::atomic_flag> decided;
        void operator()() const noexcept
        {
            if (decided->test()) return;  // the call has gone on, and is not to end with this thread
            auto const self = of.lock();
            if (!self || self->sizes_.in_child() || decided->test_and_set()) return;
            self->changed(std::make_error_code(std::errc::operation_canceled));
        }
    };

    void follow(step next)
    {
        auto const self = shared_from_this();  // an answer may come before this returns
        switch (next) {
        case step::try_slot:
            return steps_->slots()
                ->at(steps_->slot())
                ->begin_lock({.once = true}, steps_->over(), result_to(self, &permit_call::tried));
        case step::wait_for_slot: return wait_for_slot();
        case step::wait_for_turn:
            return steps_->turn().begin_lock(steps_->limit(), steps_->over(), result_to(self, &permit_call::in_turn));
        case step::wait_for_change: return wait_for_change();
        case step::ended: return finish(steps_->code());
        }
    }

    void tried(std::error_code ec, bool held) noexcept
    {
        go_on([&] { return steps_->tried(held ? std::error_code{} : ec); });
    }

    void in_turn(std::error_code ec, bool held) noexcept
    {
        go_on([&] { return steps_->in_turn(held ? std::error_code{} : ec); });
    }

    void changed(std::error_code ec) noexcept
    {
        go_on([&] { return steps_->changed(ec); });
    }

    /// Effects: does what `next()` says.
    template <class Next>
    void go_on(Next const& next) noexcept
    try {
        follow(next());
    } catch (...) {
        finish(current_exception_code());
    }

    void wait_for_slot()
    {
        auto const all = std::make_shared<slot_wait>(steps_->limit());
        auto const slots = steps_->slots();
        all->tell([self = shared_from_this(), of = std::weak_ptr{all}] { self->look(of.lock()); });
        cancel_on_stop_.emplace(steps_->over(), cancel{all});
        try {
            slots->wait_for_each(*all);
        } catch (...) {
            all->fail(current_exception_code());
        }
        all->begun();
    }

    /// Effects: goes on if `all` has a result.
    void look(std::shared_ptr<slot_wait> const& all) noexcept
    {
        auto const said = all ? all->settled() : std::nullopt;
        if (!said) return;
        cancel_on_stop_.reset();
        go_on([&] { return steps_->waited(*said); });
    }

    void wait_for_change()
    {
        auto const self = shared_from_this();
        auto const in = steps_->slots();
        auto const refused = steps_->code();
        auto const decided = std::make_shared<std::atomic_flag>();  // by the end of the change, or a stop before
        abandon_on_stop_.emplace(steps_->stop(), abandon{self, decided});
        bool waits = false;
        try {
            waits = sizes_.after_change(in, [self, decided] {
                if (!decided->test_and_set()) self->changed({});
            });
        } catch (...) {
            if (decided->test_and_set()) return;  // the result was told, or is about to be
            throw;
        }
        if (!waits && !decided->test_and_set()) changed(refused);
    }

    void finish(std::error_code ec) noexcept
    {
        auto some = ec ? held_slots{} : steps_->take();
        steps_.reset();  // which gives back the rest
        bool const held = !some.empty();
        has(std::move(some));
        tell(std::move(told_), ec, held);
    }

    std::shared_ptr<semaphore_object> const of_;
    slot_sizes& sizes_;
    std::size_t const n_;
    held_slots slots_;
    std::shared_ptr<joint_hold> made_;  // for the permits that it will have
    std::shared_ptr<joint_hold> hold_;  // null: it has none, or has left them
    std::shared_ptr<joint_hold> over_;  // is being given back
    std::unique_ptr<async_result> told_;
    std::optional<permit_steps> steps_;  // while the call goes on
    std::optional<std::stop_callback<cancel>> cancel_on_stop_;
    std::optional<std::stop_callback<abandon>> abandon_on_stop_;
};

}  // namespace holdfast::detail
