// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/async_object.hpp>
#include <holdfast/core/joint_hold.hpp>
#include <holdfast/core/lease.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/core/semaphore_object.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/lock/announce.hpp>
#include <holdfast/lock/permit_call.hpp>
#include <holdfast/lock/slot_sizes.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// One permit.
class one_permit final : public permit_call {
public:
    one_permit(std::shared_ptr<semaphore_object> of, slot_sizes& sizes) : permit_call{std::move(of), sizes, 1} {}

    /// What was not given back is kept: it could not be begun.
    ~one_permit() override
    {
        if (has_) one_permit::leave();
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
        of().keep(std::move(mine_));
    }
    [[nodiscard]] holdfast::lease lease() const override
    {
        return mine_.empty() ? holdfast::lease{} : mine_.front().lock->lease();
    }

private:
    void has(held_slots some) noexcept override
    {
        has_ = !some.empty();
        mine_ = std::move(some);
    }

    /// Returns: the lock of the slot that it has, or had; without one, any.
    [[nodiscard]] std::shared_ptr<lock_object> mine() const { return mine_.empty() ? any() : mine_.front().lock; }

    held_slots mine_;  // which one it has, or had
    bool has_ = false;
};

/// Several permits, all or none.
class permit_batch final : public permit_call {
public:
    permit_batch(std::shared_ptr<semaphore_object> of, slot_sizes& sizes, std::size_t n)
        : permit_call{std::move(of), sizes, n}
    {
    }

    /// What was not given back is kept: it could not be begun.
    ~permit_batch() override
    {
        if (hold_) of().keep(std::move(slots_));
    }

    void begin_unlock(holdfast::lease const& hold, std::unique_ptr<async_result> told) override
    {
        if (!hold_ || hold != lease() || in_child())  // says `not_owner`, or that it is a child
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
                one.lock->begin_unlock(mine,
                                       result_to(std::static_pointer_cast<permit_batch>(self), &permit_batch::given));
            } catch (...) {
                one.lock->give_back(mine);
                given(current_exception_code(), false);
            }
        }
    }

    void give_back(holdfast::lease const& hold, rest then) noexcept override
    {
        if (!hold_ || hold != lease() || in_child()) return;
        over_ = std::move(hold_);
        over_->release();
        for (auto const& one : slots_) one.lock->give_back(one.lock->lease(), then);
        released();
    }

    void leave() noexcept override
    {
        of().keep(std::move(slots_));
        hold_ = nullptr;
    }
    [[nodiscard]] holdfast::lease lease() const override { return holdfast::lease{hold_}; }

private:
    void prepare() override { made_ = std::make_shared<joint_hold>(number()); }

    void has(held_slots some) noexcept override
    {
        auto const made = std::move(made_);
        if (some.empty()) return;
        slots_ = std::move(some);
        bool all_held = true;
        for (auto const& one : slots_) all_held = made->add(one.lock->lease(), made) && all_held;
        if (!all_held) made->lose();
        hold_ = made;
    }

    /// Effects: acts on the answer to a permit that was given back.
    void given(std::error_code ec, bool /*held*/) noexcept
    {
        {
            std::scoped_lock guard{mutex_};
            worst_ = worse(worst_, ec);
            if (--pending_ != 0) return;
        }
        released();
        tell(std::move(told_), worst_, false);
    }

    /// Effects: announces that one of them was lost, if so.
    void released() noexcept
    {
        if (over_->part_lost()) announce_loss(any()->calls(), *over_);
    }

    held_slots slots_;
    std::shared_ptr<joint_hold> made_;  // for the permits that it will have
    std::shared_ptr<joint_hold> hold_;  // null: it has none, or has left them
    std::shared_ptr<joint_hold> over_;  // is being given back
    std::unique_ptr<async_result> told_;
    std::mutex mutex_;
    std::size_t pending_ = 0;  // guarded by the mutex, as the next
    std::error_code worst_;
};

}  // namespace holdfast::detail
