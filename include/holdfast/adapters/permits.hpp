// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/adapters/slot_set.hpp>
#include <holdfast/adapters/slot_wait.hpp>
#include <holdfast/core/abi.hpp>
#include <holdfast/core/async_object.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/fork_guard.hpp>
#include <holdfast/core/lease.hpp>
#include <holdfast/core/make_as.hpp>
#include <holdfast/core/name.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/lock/report.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// The permits of one `semaphore`: its slots, and which of them `acquire` has taken.
class permits final : public async_source, public std::enable_shared_from_this<permits> {
public:
    permits(std::string_view name, std::ptrdiff_t max, slot_set::maker const& make)
        : slots_{name, max, make}, taken_(slots_.size())
    {
    }

    [[nodiscard]] slot_set& slots() noexcept { return slots_; }
    [[nodiscard]] slot_set const& slots() const noexcept { return slots_; }

    /// Effects: gives back all slots that are taken; what waits is cancelled, also if it is granted one of these.
    void close() noexcept
    {
        closing_ = true;
        slots_.close();
    }

    /// Effects: `slot` is one of those that `release` gives back.
    void keep(std::size_t slot) noexcept
    {
        if (origin_.in_child()) return;  // the mutex may be locked for ever
        std::scoped_lock guard{mutex_};
        taken_[slot] = ++acquired_;
    }

    /// As above, for several.
    void keep(std::vector<std::size_t> const& slots) noexcept
    {
        if (origin_.in_child()) return;
        std::scoped_lock guard{mutex_};
        for (auto const slot : slots) taken_[slot] = ++acquired_;
    }

    /// Effects: one of those that were kept, and is to be given back by the caller, is not kept any more: one that is
    /// lost, if there is any, or else the one that was kept first. Returns: which one; nothing if none was kept.
    [[nodiscard]] std::optional<std::size_t> let_go() noexcept
    {
        if (origin_.in_child()) return std::nullopt;
        std::scoped_lock guard{mutex_};
        return next_to_give_back();
    }

    /// As above, for `n` of them. Returns: their locks; none if fewer were kept. Throws: `std::bad_alloc`: then all are
    /// kept.
    [[nodiscard]] std::vector<std::shared_ptr<lock_object>> let_go(std::size_t n)
    {
        if (origin_.in_child()) return {};
        std::vector<std::shared_ptr<lock_object>> chosen;
        std::scoped_lock guard{mutex_};
        auto const free = static_cast<std::size_t>(std::count(taken_.begin(), taken_.end(), std::uint64_t{0}));
        if (n > taken_.size() - free) return {};
        chosen.reserve(n);
        while (chosen.size() < n) chosen.push_back(slots_.at(next_to_give_back().value()));
        return chosen;
    }

    [[nodiscard]] std::shared_ptr<async_object> to_lock() override
    {
        if (origin_.in_child()) throw made_before_fork(slots_.name());
        return std::make_shared<one_permit>(shared_from_this());
    }

    [[nodiscard]] std::shared_ptr<async_object> to_unlock(holdfast::lease& hold) override
    {
        if (origin_.in_child()) throw made_before_fork(slots_.name());
        auto made = std::make_shared<one_permit>(shared_from_this());
        made->take_over(let_go());
        hold = made->lease();
        return made;
    }

private:
    /// One permit, during an asynchronous call and while a guard has it. It is taken as `slot_set::take` does:
    ///
    /// | stage | event | next |
    /// |---|---|---|
    /// | trying | the slot that was tried is free | held |
    /// | trying | it is not | trying the next one; after the last one waiting for all at once |
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

        /// Effects: has `slot`, if that is one.
        void take_over(std::optional<std::size_t> slot) noexcept
        {
            slot_ = slot;
            has_ = slot.has_value();
        }

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
            explicit answer(std::shared_ptr<one_permit> of) noexcept
                : of_{std::move(of)}, runs_user_code_{of_->told_->runs_user_code()}
            {
            }
            void deliver(std::error_code ec, bool held) noexcept override { of_->tried(ec, held); }
            [[nodiscard]] bool runs_user_code() const noexcept override { return runs_user_code_; }

        private:
            std::shared_ptr<one_permit> const of_;
            bool const runs_user_code_;
        };

        struct cancel {
            std::shared_ptr<slot_wait> of;
            void operator()() const noexcept { of->cancel(); }
        };

        [[nodiscard]] slot_set& slots() const noexcept { return of_->slots(); }
        [[nodiscard]] std::size_t next() const noexcept { return (first_ + tried_) % slots().size(); }

        void try_slot()
        {
            slots().at(next())->begin_lock({.once = true}, stop_, make_as<async_result, answer>(shared_from_this()));
        }

        /// Effects: acts on the answer of the slot that was tried.
        void tried(std::error_code ec, bool held) noexcept
        try {
            if (held) return finish({}, next());
            bool const refused = ec == errc::timed_out;
            if (!refused && ec != errc::unavailable) return finish(ec, {});
            bool const more = ++tried_ < slots().size() && refused && boot_clock::now() < limit_.deadline;
            more ? try_slot() : wait_for_all();
        } catch (...) {
            finish(current_exception_code(), {});
        }

        void wait_for_all()
        {
            auto const all = std::make_shared<slot_wait>(limit_);
            all->tell([self = shared_from_this(), of = std::weak_ptr{all}] { self->look(of.lock()); },
                      told_->runs_user_code());
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
            if (slot && of_->closing_) {  // the end of the semaphore gave it back to this call
                auto const& object = slots().at(*std::exchange(slot, std::nullopt));
                object->give_back_early(object->lease());
                ec = std::make_error_code(std::errc::operation_canceled);
            }
            if (slot) slots().took(*slot);
            take_over(slot);
            told->deliver(ec, slot.has_value());
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

    [[nodiscard]] std::optional<std::size_t> next_to_give_back() noexcept
    {
        std::optional<std::size_t> chosen;
        for (std::size_t i = 0; i < taken_.size(); ++i) {
            if (taken_[i] == 0) continue;
            bool const lost = !slots_.at(i)->lease().still_held();
            if (lost || !chosen || taken_[i] < taken_[*chosen]) chosen = i;
            if (lost) break;
        }
        if (chosen) taken_[*chosen] = 0;
        return chosen;
    }

    slot_set slots_;
    std::mutex mutex_;
    std::vector<std::uint64_t> taken_;  // for each slot that was taken by `acquire`, its number in that order; 0: none
    std::uint64_t acquired_ = 0;
    std::atomic<bool> closing_{false};
    fork_guard const origin_;
};

}  // namespace holdfast::detail
