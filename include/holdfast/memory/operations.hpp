// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/core/token.hpp>
#include <holdfast/io/reactor.hpp>
#include <holdfast/io/running.hpp>
#include <holdfast/memory/data.hpp>
#include <holdfast/quorum/acquire_machine.hpp>
#include <holdfast/quorum/extend_machine.hpp>
#include <holdfast/quorum/release_machine.hpp>

#include <chrono>
#include <concepts>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::memory {

/// The leases are one node, which answers at once and never fails.
inline quorum::node_group const one_node{.size = 1, .timeout = std::chrono::hours{1}};

/// Effects: runs `machine`, whose step is to ask the node once. `ask(sent)` says whether the lease is the owner's.
template <class Machine, std::predicate<boot_clock::time_point> Ask>
void ask_once(Machine& machine, completion& done, Ask const& ask)
{
    auto const sent = boot_clock::now();
    static_cast<void>(machine.start(sent));
    auto const answer = ask(sent) ? quorum::answer::applied() : quorum::answer::refused();
    static_cast<void>(machine.on_answer(0, answer, boot_clock::now()));
    done.complete();
}

/// Runs a `quorum::acquire_machine`; while it waits, it is in the store's line.
class acquire_operation final : public pending_acquire, public io::running {
public:
    acquire_operation(std::shared_ptr<data> d, std::shared_ptr<io::reactor> runs, shared_key key,
                      acquire_request const& request)
        : data_{std::move(d)},
          reactor_{std::move(runs)},
          key_{std::move(key)},
          request_{request},
          machine_{{.nodes = one_node, .request = request}}
    {
    }

    /// Effects: abandons the operation if it has not ended.
    ~acquire_operation() override
    {
        if (!outcome_) {
            std::scoped_lock guard{*reactor_};
            reactor_->abandon(*this);
        }
        if (place_) data_->unwatch(key_->name(), *place_);
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

    [[nodiscard]] result<grant> outcome() const override { return *outcome_; }

    [[nodiscard]] boot_clock::time_point wake_at() const noexcept override { return machine_.wake_at(); }

    void on_time(boot_clock::time_point now) noexcept override
    {
        if (!outcome_) perform(machine_.on_time(now));
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

    /// Nothing is rolled back: a grant that came too late to be used ends within its drift and the margin for the
    /// announcement of a loss, and other waiters must not be woken from here.
    void perform(quorum::acquire_step step) noexcept
    try {
        while (!step.done && (step.watch || !step.ask.empty())) {
            if (step.watch) place_ = data_->watch(key_->name(), std::make_shared<line_entry>(*this));
            // The lock may have been released before this was in line.
            step = step.ask.empty() ? machine_.on_released(0, boot_clock::now()) : ask();
        }
        if (!step.done) return reactor_->updated(*this);
        if (step.done->error) return end(step.done->error);
        end(grant{.token = token_,
                  .valid_until = step.done->valid_until,
                  .fence = step.done->fence,
                  .fences = request_.fences});
    } catch (...) {
        end(holdfast::detail::current_exception_code());
    }

    [[nodiscard]] quorum::acquire_step ask()
    {
        token_ = owner_token::fresh();
        auto const sent = boot_clock::now();
        auto const got = data_->acquire(key_->name(), token_, request_.fences, sent, sent + request_.ttl);
        auto const left = std::chrono::ceil<std::chrono::milliseconds>(got.expires - sent);
        auto const answer = got.granted ? quorum::answer::applied(got.last_fence) : quorum::answer::refused(left);
        return machine_.on_answer(0, answer, boot_clock::now());
    }

    void end(result<grant> outcome) noexcept
    {
        outcome_.emplace(std::move(outcome));
        reactor_->ended(*this);
    }

    std::shared_ptr<data> data_;
    std::shared_ptr<io::reactor> const reactor_;
    shared_key key_;
    acquire_request request_;
    quorum::acquire_machine machine_;
    owner_token token_;
    std::optional<result<grant>> outcome_;
    std::optional<data::waiters::iterator> place_;
};

/// Its answer is known at once.
class extend_operation final : public pending_extend {
public:
    extend_operation(std::shared_ptr<data> d, shared_key key, owner_token const& token, std::chrono::milliseconds ttl)
        : data_{std::move(d)}, key_{std::move(key)}, token_{token}, ttl_{ttl}
    {
    }

    void start(completion& done) override
    {
        ask_once(machine_, done, [&](auto sent) { return data_->extend(key_->name(), token_, sent, sent + ttl_); });
    }

    void cancel() noexcept override {}

    [[nodiscard]] result<boot_clock::time_point> outcome() const override
    {
        auto const got = machine_.outcome();
        if (got.error) return got.error;
        return got.valid_until;
    }

private:
    std::shared_ptr<data> data_;
    shared_key key_;
    owner_token token_;
    std::chrono::milliseconds ttl_;
    quorum::extend_machine machine_{one_node, ttl_};
};

/// Its answer is known at once.
class release_operation final : public pending_release {
public:
    release_operation(std::shared_ptr<data> d, shared_key key) : data_{std::move(d)}, key_{std::move(key)} {}

    void bind(owner_token const& token) noexcept override { token_ = token; }

    void start(completion& done) override
    {
        ask_once(machine_, done, [&](auto sent) { return data_->release(key_->name(), token_, sent); });
    }

    void cancel() noexcept override {}
    [[nodiscard]] failure outcome() const override { return {machine_.outcome(), {}}; }

private:
    std::shared_ptr<data> data_;
    shared_key key_;
    owner_token token_;
    quorum::release_machine machine_{one_node};
};

}  // namespace holdfast::memory
