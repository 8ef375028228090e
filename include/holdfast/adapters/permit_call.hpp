// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/adapters/permits.hpp>
#include <holdfast/adapters/slot_set.hpp>
#include <holdfast/adapters/slot_wait.hpp>
#include <holdfast/core/abi.hpp>
#include <holdfast/core/async_object.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/lease.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/lock/announce.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// One permit of a `semaphore`, during an asynchronous call and while a guard has it. It is taken as `slot_set::take`
/// does:
///
/// | stage | event | next |
/// |---|---|---|
/// | trying | the slot that was tried is free | held |
/// | trying | it is not | trying the next one; after the last one waiting for all at once, or failed |
/// | trying | it could not be asked; the deadline | waiting for all at once |
/// | trying | a cancel; another failure | failed |
/// | waiting | `slot_wait` has a result | held, or failed |
class one_permit final : public async_object, public std::enable_shared_from_this<one_permit> {
public:
    explicit one_permit(std::shared_ptr<permits> of) noexcept : of_{std::move(of)} {}

    /// What was not given back is kept: it could not be begun.
    ~one_permit() override
    {
        if (slot_ && has_) of_->keep(*slot_);
    }

    /// Returns: which slot it has, and does not have any more.
    [[nodiscard]] std::size_t let_go() noexcept
    {
        has_ = false;
        return slot_.value_or(0);
    }

    /// Effects: has the permit that `semaphore::release` would give back, if there is one.
    void take_over() noexcept { has(of_->let_go()); }

    void begin_lock(patience const& p, std::stop_token stop, std::unique_ptr<async_result> told) override
    {
        limit_ = p;
        stop_ = std::move(stop);
        told_ = std::move(told);
        first_ = slots().first();
        try {
            try_slot();
        } catch (...) {
            told_ = nullptr;
            throw;
        }
    }

    void begin_unlock(holdfast::lease const& hold, std::unique_ptr<async_result> told) override
    {
        slots().at(slot_.value_or(0))->begin_unlock(hold, std::move(told));
        has_ = false;
    }
    void give_back(holdfast::lease const& hold) noexcept override
    {
        has_ = false;
        if (slot_) slots().at(*slot_)->give_back(hold);
    }
    void leave() noexcept override
    {
        has_ = false;
        of_->keep(*slot_);
    }
    [[nodiscard]] holdfast::lease lease() const override
    {
        return slot_ ? slots().at(*slot_)->lease() : holdfast::lease{};
    }
    [[nodiscard]] bool closed() const noexcept override { return slots().at(slot_.value_or(0))->closed(); }

private:
    /// The receiver of a try.
    class answer final : public async_result {
    public:
        explicit answer(std::shared_ptr<one_permit> of) noexcept : of_{std::move(of)} {}
        void deliver(std::error_code ec, bool held) noexcept override { of_->tried(ec, held); }

    private:
        std::shared_ptr<one_permit> const of_;
    };

    struct cancel {
        std::shared_ptr<slot_wait> of;
        void operator()() const noexcept
        {
            auto const kept = of;  // the answers may end this
            kept->cancel();
        }
    };

    void has(std::optional<std::size_t> slot) noexcept
    {
        slot_ = slot;
        has_ = slot.has_value();
    }

    [[nodiscard]] slot_set& slots() const noexcept { return of_->slots(); }
    [[nodiscard]] std::size_t next() const noexcept { return (first_ + tried_) % slots().size(); }

    void try_slot()
    {
        slots().at(next())->begin_lock({.once = true}, stop_, std::make_unique<answer>(shared_from_this()));
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
        cancel_on_stop_.emplace(stop_, cancel{all});
        slot_wait::begun const beginning{all};  // no result before all have begun
        try {
            for (std::size_t n = 0; n < slots().size() && !all->decided(); ++n) {
                auto const slot = (first_ + n) % slots().size();
                all->begin(slot, slots().at(slot));
            }
        } catch (...) {
            all->fail(current_exception_code());
        }
    }

    /// Effects: ends if `all` has a result.
    void look(std::shared_ptr<slot_wait> const& all) noexcept
    {
        auto const said = all ? all->settled() : std::nullopt;
        if (said) finish(said->code, said->slot);
    }

    void finish(std::error_code ec, std::optional<std::size_t> slot) noexcept
    {
        std::unique_ptr<async_result> told;
        {
            std::scoped_lock guard{ending_};
            told = std::move(told_);
        }
        if (!told) return;
        cancel_on_stop_.reset();
        if (slot && of_->closing().stop_requested()) {  // the end of the semaphore gave it back to this call
            auto const& object = slots().at(*std::exchange(slot, std::nullopt));
            object->give_back_early(object->lease());
            ec = std::make_error_code(std::errc::operation_canceled);
        }
        if (slot) slots().took(*slot);
        has(slot);
        detail::deliver(slots().at(0)->calls(), std::move(told),
                        [ec, held = slot.has_value()](async_result& whom) { whom.deliver(ec, held); });
    }

    std::shared_ptr<permits> const of_;
    std::optional<std::size_t> slot_;  // which one it has, or had
    bool has_ = false;
    patience limit_;
    std::stop_token stop_;
    std::mutex ending_;
    std::unique_ptr<async_result> told_;
    std::size_t first_ = 0;
    std::size_t tried_ = 0;
    std::optional<std::stop_callback<cancel>> cancel_on_stop_;
};

}  // namespace holdfast::detail
