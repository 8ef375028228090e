// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/async_object.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/lease.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/lock/announce.hpp>
#include <holdfast/lock/permits.hpp>
#include <holdfast/lock/slot_set.hpp>
#include <holdfast/lock/slot_sizes.hpp>
#include <holdfast/lock/slot_wait.hpp>

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stop_token>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// One permit, during an asynchronous call and while a guard has it. It is taken as `slot_set::take` does:
///
/// | stage | event | next |
/// |---|---|---|
/// | trying | the slot that was tried is free | held |
/// | trying | it is not | trying the next one; after the last one waiting for all at once, or failed |
/// | trying | it could not be asked; the deadline | waiting for all at once |
/// | trying | a cancel; another failure | failed |
/// | waiting | `slot_wait` has a result | held, or failed |
/// | any | the number of permits is changed | trying the slots of the new number, when that has ended |
/// | until that has ended | a cancel | failed; the deadline is looked at when it has ended |
class one_permit final : public async_object, public std::enable_shared_from_this<one_permit> {
public:
    explicit one_permit(std::shared_ptr<permits> of) : of_{std::move(of)} {}

    /// What was not given back is kept: it could not be begun.
    ~one_permit() override
    {
        if (has_) leave();
    }

    /// Returns: the slot that it has, and does not have any more.
    [[nodiscard]] held_slots let_go() noexcept
    {
        has_ = false;
        return std::exchange(mine_, {});
    }

    /// Effects: has the permit that `semaphore::release` would give back, if there is one.
    void take_over() noexcept { has(of_->let_go()); }

    void begin_lock(patience const& p, std::stop_token stop, std::unique_ptr<async_result> told) override
    {
        limit_ = p;
        stop_ = std::move(stop);
        told_ = std::move(told);
        try {
            begin();
        } catch (...) {
            told_ = nullptr;
            throw;
        }
    }

    void begin_unlock(holdfast::lease const& hold, std::unique_ptr<async_result> told) override
    {
        mine()->begin_unlock(hold, std::move(told));
        has_ = false;
    }
    void give_back(holdfast::lease const& hold, rest then) noexcept override
    {
        has_ = false;
        mine()->give_back(hold, then);
    }
    void leave() noexcept override
    {
        has_ = false;
        of_->keep(std::move(mine_));
    }
    [[nodiscard]] holdfast::lease lease() const override
    {
        return mine_.empty() ? holdfast::lease{} : mine_.front().lock->lease();
    }
    [[nodiscard]] bool closed() const noexcept override { return mine()->closed(); }

private:
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
        std::weak_ptr<one_permit> of;
        std::shared_ptr<std::atomic_flag> decided;
        void operator()() const noexcept
        {
            if (decided->test()) return;  // the call has gone on, and is not to end with this thread
            auto const self = of.lock();
            if (!self || self->of_->in_child() || decided->test_and_set()) return;
            self->finish(std::make_error_code(std::errc::operation_canceled), {});
        }
    };

    /// Effects: has the slot in `one`, if there is one.
    void has(held_slots one) noexcept
    {
        has_ = !one.empty();
        mine_ = std::move(one);
    }

    /// Returns: the lock of the slot that it has, or had; without one, any.
    [[nodiscard]] std::shared_ptr<lock_object> mine() const
    {
        return mine_.empty() ? slot_sizes::lock_of(of_->sizes().current(), 0) : mine_.front().lock;
    }

    [[nodiscard]] slot_set& slots() const noexcept { return in_->slots; }
    [[nodiscard]] std::size_t next() const noexcept { return (first_ + tried_) % slots().size(); }

    /// Effects: tries the slots of the number in use.
    void begin()
    {
        in_ = of_->sizes().current();
        first_ = slots().first();
        tried_ = 0;
        try_slot();
    }

    void begin_again() noexcept
    try {
        begin();
    } catch (...) {
        finish(current_exception_code(), {});
    }

    void try_slot()
    {
        slots().at(next())->begin_lock({.once = true}, stop_, result_to(shared_from_this(), &one_permit::tried));
    }

    /// Effects: acts on the answer of the slot that was tried.
    void tried(std::error_code ec, bool held) noexcept
    try {
        if (held) return finish({}, next());
        bool const refused = ec == errc::timed_out;
        if (!refused && ec != errc::unavailable) return finish(ec, {});
        bool const more = ++tried_ < slots().size() && refused && boot_clock::now() < limit_.deadline;
        more ? try_slot() : limit_.once ? finish(ec, {}) : wait_for_all();
    } catch (...) {
        finish(current_exception_code(), {});
    }

    void wait_for_all()
    {
        auto const all = std::make_shared<slot_wait>(limit_);
        all->tell([self = shared_from_this(), of = std::weak_ptr{all}] { self->look(of.lock()); });
        {
            std::scoped_lock guard{ending_};
            waiting_ = all.get();
        }
        cancel_on_stop_.emplace(stop_, cancel{all});
        cancel_on_change_.emplace(in_->replaced.get_token(), cancel{all});
        try {
            for (std::size_t n = 0; n < slots().size() && !all->decided(); ++n) {
                auto const slot = (first_ + n) % slots().size();
                all->begin(slot, slots().at(slot));
            }
        } catch (...) {
            all->fail(current_exception_code());
        }
        all->begun();
    }

    /// Effects: ends if `all` has a result.
    void look(std::shared_ptr<slot_wait> const& all) noexcept
    {
        auto const said = all ? all->settled() : std::nullopt;
        if (!said) return;
        {
            std::scoped_lock guard{ending_};
            if (waiting_ != all.get()) return;  // that was told before
            waiting_ = nullptr;
        }
        finish(said->code, said->slot);
    }

    /// Returns: whether a call that has ended with `ec` goes on with another number of permits, or was cancelled while
    /// it waited for that.
    [[nodiscard]] bool goes_on(std::error_code ec)
    {
        if (of_->closing().stop_requested()) return false;
        bool const interrupted = ec == std::errc::operation_canceled && !stop_.stop_requested();
        if (ec != errc::misconfigured && !interrupted) return false;
        auto const decided = std::make_shared<std::atomic_flag>();  // by the end of the change, or a stop before
        abandon_on_stop_.emplace(stop_, abandon{weak_from_this(), decided});
        bool waits = false;
        try {
            waits = of_->sizes().after_change(in_, [self = shared_from_this(), decided] {
                if (!decided->test_and_set()) self->begin_again();
            });
        } catch (...) {
            if (decided->test_and_set()) return true;  // the result was told, or is about to be
            throw;
        }
        return waits || decided->test_and_set();
    }

    void finish(std::error_code ec, std::optional<std::size_t> slot) noexcept
    try {
        cancel_on_stop_.reset();
        cancel_on_change_.reset();
        held_slots one;
        if (slot) one.push_back({slot_sizes::lock_of(in_, *slot), *slot});
        if (slot && of_->closing().stop_requested()) {  // the end of the semaphore gave it back to this call
            auto const lock = one.front().lock;
            one.clear();
            lock->give_back(lock->lease(), rest::none);
            ec = std::make_error_code(std::errc::operation_canceled);
        }
        if (one.empty() && goes_on(ec)) return;
        if (slot) slots().took(*slot);
        bool const held = !one.empty();
        has(std::move(one));
        detail::deliver(slots().at(0)->calls(), std::move(told_), [=](async_result& whom) { whom.deliver(ec, held); });
    } catch (std::bad_alloc const&) {
        if (slot) slots().at(*slot)->give_back(slots().at(*slot)->lease(), rest::none);
        detail::deliver(slots().at(0)->calls(), std::move(told_), [](async_result& whom) {
            whom.deliver(std::make_error_code(std::errc::not_enough_memory), false);
        });
    }

    std::shared_ptr<permits> const of_;
    slot_sizes::shared_slots in_;  // those that are asked for
    held_slots mine_;              // which one it has, or had
    bool has_ = false;
    patience limit_;
    std::stop_token stop_;
    std::mutex ending_;
    slot_wait const* waiting_ = nullptr;  // the wait that was not told yet
    std::unique_ptr<async_result> told_;
    std::size_t first_ = 0;
    std::size_t tried_ = 0;
    std::optional<std::stop_callback<cancel>> cancel_on_stop_;
    std::optional<std::stop_callback<cancel>> cancel_on_change_;
    std::optional<std::stop_callback<abandon>> abandon_on_stop_;
};

}  // namespace holdfast::detail
