// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/announcer.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/lease.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/lock/activity.hpp>
#include <holdfast/lock/announce.hpp>
#include <holdfast/lock/mutex_state.hpp>
#include <holdfast/lock/release_call.hpp>
#include <holdfast/lock/renewer.hpp>
#include <holdfast/lock/schedule.hpp>
#include <holdfast/lock/wait_queue.hpp>
#include <holdfast/lock/waiter.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// An asynchronous lock call. The client's thread runs `wait_queue::step` for it. The caller runs the first step, so
/// that the request is sent before the call returns. It keeps itself alive until it has ended.
class async_lock_call final : public waiter, public scheduled, public std::enable_shared_from_this<async_lock_call> {
public:
    async_lock_call(std::shared_ptr<wait_queue> queue, std::shared_ptr<mutex_state> of, patience const& p,
                    std::unique_ptr<async_result> told)
        : waiter{*of, p}, queue_{std::move(queue)}, owner_{std::move(of)}, told_{std::move(told)}
    {
        limit.told_later = true;
    }

    ~async_lock_call() override { thread().remove(timer_); }

    /// Effects: begins. Throws: if it throws, nothing was begun.
    void begin(std::stop_token stop)
    {
        thread().prepare(timer_, weak_from_this());
        queue_->tell_attempt(*this, &thread().calls);
        std::unique_lock guard{stepping_};
        queue_->enter(*this);
        counted_.emplace(queue_->reports().seen);
        self_ = shared_from_this();
        cancel_on_stop_.emplace(std::move(stop), cancel{this});
        step();
        if (!ended()) return;
        thread().poke(timer_);  // no result is delivered from inside the call
    }

    void signal(std::uint32_t what) noexcept override
    {
        // After another signal the client's thread may end the call before it is poked here.
        auto const self = shared_from_this();
        signals_.fetch_or(what, std::memory_order_release);
        thread().poke(timer_);
    }

    void on_due(boot_clock::time_point, bool) noexcept override
    {
        {
            std::scoped_lock guard{stepping_};
            if (!self_) return;
            if (!ended()) step();
            if (!ended()) return;
        }
        finish();
    }

private:
    struct cancel {
        async_lock_call* call;
        void operator()() const noexcept { call->queue_->cancel(*call); }
    };

    [[nodiscard]] renewer& thread() const noexcept { return queue_->renewer(); }

    void step() noexcept
    {
        auto const then = queue_->step(*this, signals_.exchange(0, std::memory_order_acquire));
        if (then.asks != std::exchange(asks_, then.asks)) then.asks ? thread().begin_service() : thread().end_service();
        if (ended()) return;
        queue_->tell_wait(*this, &thread().calls);
        thread().put(timer_, then.at, then.at);
    }

    void finish() noexcept
    {
        auto const self = std::move(self_);
        cancel_on_stop_.reset();
        counted_.reset();
        auto& calls = thread().calls;
        auto const ec = code();
        auto const hook = hook_of(&calls, options);
        queue_->tell_end(*this, &calls);
        report_servers(queue_->store(), hook);
        if (!ec) queue_->reports().went_well(hook, queue_->name());
        deliver(&calls, std::move(told_), ec, !ec);
    }

    std::shared_ptr<wait_queue> const queue_;
    std::shared_ptr<mutex_state> const owner_;
    std::unique_ptr<async_result> told_;
    std::shared_ptr<async_lock_call> self_;
    std::mutex stepping_;
    std::atomic<std::uint32_t> signals_{0};
    bool asks_ = false;  // its request is under way: the client's thread serves the store
    renewer::timer timer_;
    std::optional<activity::wait> counted_;
    std::optional<std::stop_callback<cancel>> cancel_on_stop_;
};

/// An asynchronous unlock. It keeps itself alive until it has ended.
class async_unlock_call final : public scheduled,
                                public release_call::receiver,
                                public std::enable_shared_from_this<async_unlock_call> {
public:
    async_unlock_call(std::shared_ptr<wait_queue> queue, std::unique_ptr<async_result> told)
        : queue_{std::move(queue)}, told_{std::move(told)}
    {
    }

    ~async_unlock_call() override { thread().remove(timer_); }

    /// Effects: begins to give up `hold`, if it is the hold of `owner`. Throws: if it throws, nothing was begun.
    void begin(mutex_state& owner, lease const& hold)
    {
        thread().prepare(timer_, weak_from_this());
        queue_->prepare_release(owner);
        std::scoped_lock guard{beginning_};
        if (!queue_->begin_service(owner))
            throw error_of(queue_->name(), {make_error_code(errc::not_owner), "the mutex was destroyed"});
        self_ = shared_from_this();
        result_ = queue_->begin_release(owner, hold, self_, gave_up_);
        if (result_) thread().poke(timer_);
    }

    void on_due(boot_clock::time_point, bool) noexcept override
    {
        {
            std::scoped_lock begun{beginning_};  // the answer may come before `begin` has ended
        }
        auto const self = std::exchange(self_, nullptr);
        if (!self) return;
        thread().end_service();
        auto& calls = thread().calls;
        auto const said = result_ ? *result_ : queue_->finish_release(*call_, *gave_up_, &calls);
        if (said.code) told_->explain(said);
        deliver(&calls, std::move(told_), said.code, false);
    }

private:
    [[nodiscard]] renewer& thread() const noexcept { return queue_->renewer(); }

    void released(std::unique_ptr<release_call> call) noexcept override
    {
        auto const queue = queue_;
        call_ = std::move(call);
        queue->renewer().poke(timer_);
    }

    std::shared_ptr<wait_queue> const queue_;
    std::unique_ptr<async_result> told_;
    std::shared_ptr<async_unlock_call> self_;
    std::mutex beginning_;
    std::optional<failure> result_;
    std::unique_ptr<release_call> call_;
    std::shared_ptr<hold_state> gave_up_;
    renewer::timer timer_;
};

}  // namespace holdfast::detail
