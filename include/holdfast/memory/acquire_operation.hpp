// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/core/token.hpp>
#include <holdfast/io/reactor.hpp>
#include <holdfast/io/running.hpp>
#include <holdfast/memory/data.hpp>
#include <holdfast/memory/node.hpp>
#include <holdfast/memory/permit_numbers.hpp>
#include <holdfast/quorum/acquire_machine.hpp>
#include <holdfast/quorum/answer.hpp>
#include <holdfast/quorum/waiting_mark.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::memory {

/// Runs a `quorum::acquire_machine`; while it waits, it is in the store's line.
class acquire_operation final : public pending_acquire, public io::running {
public:
    acquire_operation(std::shared_ptr<data> d, std::shared_ptr<io::reactor> runs, shared_key key,
                      acquire_request const& request)
        : data_{std::move(d)},
          reactor_{std::move(runs)},
          key_{std::move(key)},
          request_{request},
          timeout_{data_->present_faults().operation_timeout},
          machine_{{.nodes = {.size = 1, .timeout = timeout_}, .request = request}}
    {
    }

    /// Effects: abandons the operation if it has not ended.
    ~acquire_operation() override
    {
        if (!outcome_) {
            std::scoped_lock guard{*reactor_};
            reactor_->abandon(*this);
        }
        if (place_)
            data_->unwatch(*key_, *place_);
        else if (gave_back_)
            data_->wake_if_free(key_->name());
    }

    void start(completion& done) override
    {
        std::scoped_lock guard{*reactor_};
        reactor_->begin(*this, done);
        perform(machine_.start(boot_clock::now()));
    }

    void cancel() noexcept override
    {
        std::scoped_lock guard{*reactor_};
        if (!outcome_) perform(machine_.cancel(boot_clock::now()));
    }

    [[nodiscard]] std::optional<bool> unavailable() const noexcept override
    {
        std::scoped_lock guard{*reactor_};
        return machine_.unavailable_so_far();
    }

    [[nodiscard]] result<grant> outcome() const override { return *outcome_; }

    [[nodiscard]] boot_clock::time_point wake_at() const noexcept override
    {
        return std::min(machine_.wake_at(), arrives_at_);
    }

    void on_time(boot_clock::time_point now) noexcept override
    {
        if (outcome_) return;
        bool const answered = now >= std::exchange(arrives_at_, now >= arrives_at_ ? never : arrives_at_);
        perform(answered ? machine_.on_answer(0, answer_, now) : machine_.on_time(now));
    }

private:
    /// The entry in the store's line: it may be woken after the operation has ended.
    class line_entry final : public watcher {
    public:
        explicit line_entry(acquire_operation& of) noexcept : of_{&of} {}

        void wake() noexcept override
        {
            std::unique_lock guard{mutex_};
            if (!of_) return;
            auto const reactor = of_->reactor_;  // its client may be gone when the operation has ended
            std::scoped_lock const running{*reactor};
            if (!of_->outcome_) of_->perform(of_->machine_.on_released(0, boot_clock::now()));
            guard.unlock();  // the completion may destroy the operation
        }

        void forget() noexcept override
        {
            std::scoped_lock guard{mutex_};
            of_ = nullptr;
        }

    private:
        std::mutex mutex_;
        acquire_operation* of_;
    };

    void perform(quorum::acquire_step step) noexcept
    try {
        for (;;) {
            if (!step.roll_back.empty()) give_back();
            if (step.watch) place_ = data_->watch(*key_, std::make_shared<line_entry>(*this));
            if (step.done) break;
            if (!step.ask.empty()) {
                if (ask(); arrives_at_ > boot_clock::now()) break;
                arrives_at_ = never;
                step = machine_.on_answer(0, answer_, boot_clock::now());
            } else if (step.watch) {
                // The lock may have been released before this was in line.
                step = machine_.on_released(0, boot_clock::now());
            } else {
                break;
            }
        }
        if (!step.done && machine_.unavailable_so_far() == false) tell_must_wait();
        if (!step.done) return reactor_->updated(*this);
        if (step.done->error == errc::misconfigured) return end(failure{step.done->error, other_number_});
        if (step.done->error) {
            auto why = explained(step.done->error);
            why.held_until = step.done->held_until;
            return end(std::move(why));
        }
        end(grant{.token = token_,
                  .valid_until = step.done->valid_until,
                  .fence = step.done->fence,
                  .fences = request_.fences});
    } catch (...) {
        end(holdfast::detail::current_exception_code());
    }

    /// Effects: asks with a fresh token; `answer_` comes at `arrives_at_`.
    void ask()
    {
        token_ = owner_token::fresh();
        auto const sent = boot_clock::now();
        auto const fault = data_->next_fault();
        arrives_at_ = arrival(fault, sent);
        if (fault.unavailable) return static_cast<void>(answer_ = not_asked());
        if (request_.in_order && data_->others_are_first(key_->name(), place_))
            return static_cast<void>(answer_ = quorum::answer::refused(time_for_others));
        if (auto const* const slot = slot_of(*key_))
            if (auto const other = data_->agree(*slot, sent, sent + request_.ttl)) {
                other_number_ = "its number of permits is " + std::to_string(other) + ", and this client says " +
                                std::to_string(slot->permits());
                return static_cast<void>(answer_ = quorum::answer::refused(make_error_code(errc::misconfigured)));
            }
        wanted_lease const wanted{.mode = key_->mode(),
                                  .token = token_,
                                  .beside = request_.beside,
                                  .waits_for = quorum::waiting_mark(request_, timeout_, sent)};
        auto const got = data_->acquire(key_->name(), wanted, request_.fences, sent, sent + request_.ttl);
        auto const left = std::chrono::ceil<std::chrono::milliseconds>(got.expires - sent);
        answer_ = got.granted ? quorum::answer::applied(got.last_fence) : quorum::answer::refused(left);
    }

    /// Effects: gives back what the last request may have got. Other waiters are woken at the end: their reactors must
    /// not be locked from here.
    void give_back() noexcept
    {
        arrives_at_ = never;
        gave_back_ = data_->give_back(*key_, token_) || gave_back_;
    }

    void end(result<grant> outcome) noexcept
    {
        outcome_.emplace(std::move(outcome));
        reactor_->ended(*this);
    }

    /// When it looks whether those who were first are gone.
    static constexpr std::chrono::milliseconds time_for_others{50};

    std::shared_ptr<data> data_;
    std::shared_ptr<io::reactor> const reactor_;
    shared_key key_;
    acquire_request request_;
    std::chrono::milliseconds timeout_;
    quorum::acquire_machine machine_;
    owner_token token_;
    quorum::answer answer_;  // to the last request
    boot_clock::time_point arrives_at_ = never;
    std::string other_number_;  // why it is misconfigured
    bool gave_back_ = false;
    std::optional<result<grant>> outcome_;
    std::optional<data::waiters::iterator> place_;
};

}  // namespace holdfast::memory
