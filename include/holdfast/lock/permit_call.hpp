// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/async_object.hpp>
#include <holdfast/core/error.hpp>
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
#include <mutex>
#include <optional>
#include <stop_token>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// Permits of a semaphore, during an asynchronous call and while a guard has them. The call does what `permit_steps`
/// says: first in the calling thread, then in the client's own thread, in the one that ends a change of the number of
/// permits, or in the one that requests a stop. It has no timer of its own: while it waits for such a change, the
/// deadline is not looked at.
class permit_call : public async_object, public std::enable_shared_from_this<permit_call> {
public:
    void begin_lock(patience const& p, std::stop_token stop, std::unique_ptr<async_result> told) override
    {
        told_ = std::move(told);
        try {
            prepare();
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
        prepare();
        has(of_->let_go(n_));
    }

    [[nodiscard]] bool closed() const noexcept override { return sizes_.closed(); }

protected:
    /// `sizes`: of the semaphore `of`.
    permit_call(std::shared_ptr<semaphore_object> of, slot_sizes& sizes, std::size_t n)
        : of_{std::move(of)}, sizes_{sizes}, n_{n}
    {
    }

    /// Effects: makes what is needed to have the permits. Throws: `std::bad_alloc`.
    virtual void prepare() {}

    /// Effects: has `some`, if there are any.
    virtual void has(held_slots some) noexcept = 0;

    [[nodiscard]] semaphore_object& of() const noexcept { return *of_; }
    [[nodiscard]] bool in_child() const noexcept { return sizes_.in_child(); }
    [[nodiscard]] std::size_t number() const noexcept { return n_; }

    /// Returns: any lock of the semaphore. Throws: `error` in a child of `fork`.
    [[nodiscard]] std::shared_ptr<lock_object> any() const { return slot_sizes::lock_of(sizes_.current(), 0); }

    void tell(std::unique_ptr<async_result> told, std::error_code ec, bool held) noexcept
    {
        deliver(any()->calls(), std::move(told), [=](async_result& whom) { whom.deliver(ec, held); });
    }

private:
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
            if (!self || self->in_child() || decided->test_and_set()) return;
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
        {
            std::scoped_lock guard{ending_};
            waiting_ = all.get();
        }
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
        {
            std::scoped_lock guard{ending_};
            if (waiting_ != all.get()) return;  // that was told before
            waiting_ = nullptr;
        }
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
    std::unique_ptr<async_result> told_;
    std::optional<permit_steps> steps_;  // while the call goes on
    std::mutex ending_;
    slot_wait const* waiting_ = nullptr;  // the wait that was not told yet
    std::optional<std::stop_callback<cancel>> cancel_on_stop_;
    std::optional<std::stop_callback<abandon>> abandon_on_stop_;
};

}  // namespace holdfast::detail
