// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/core/operation.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/core/token.hpp>
#include <holdfast/zookeeper/acquire_operation.hpp>
#include <holdfast/zookeeper/error.hpp>
#include <holdfast/zookeeper/node_cleanup.hpp>
#include <holdfast/zookeeper/node_key.hpp>
#include <holdfast/zookeeper/session_core.hpp>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// Takes a permit in two acquires, which share the time of one. Each undoes what it leaves if it fails:
///
/// | state | event | next |
/// |---|---|---|
/// | queueing | the queue's lock is held | taking, with the place in the queue kept until the end |
/// | queueing | its acquire failed | done: failed |
/// | taking | the permit is held, or its acquire failed | the queue's node is removed in the background; done |
/// | taking | the session has ended | queueing, unless it asks only once |
class permit_operation final : public pending_acquire {
public:
    permit_operation(std::shared_ptr<session_core> in, std::shared_ptr<node_key const> key,
                     acquire_request const& request)
        : session_{std::move(in)}, key_{std::move(key)}, queue_key_{key_->queue()}, request_{request}
    {
        prepare();
    }

    ~permit_operation() override
    {
        if (!session_->in_child()) leave();
    }

    void start(completion& done) override
    {
        done_ = &done;
        current_.load()->start(queued_);
    }

    void cancel() noexcept override
    {
        canceled_ = true;
        current_.load()->cancel();
    }

    [[nodiscard]] result<grant> outcome() const override { return *outcome_; }

    [[nodiscard]] std::optional<bool> unavailable() const noexcept override { return current_.load()->unavailable(); }

private:
    class step final : public completion {
    public:
        step(permit_operation& of, void (permit_operation::*then)() noexcept) noexcept : of_{of}, then_{then} {}
        void complete() noexcept override { (of_.*then_)(); }
        void must_wait() noexcept override { of_.done_->must_wait(); }

    private:
        permit_operation& of_;
        void (permit_operation::*then_)() noexcept;
    };

    /// Effects: makes both acquires. Earlier ones are kept: another thread may be about to cancel one.
    void prepare()
    {
        auto place = request_;
        place.fences = 0;
        acquires_.reserve(acquires_.size() + 2);
        acquires_.push_back(std::make_unique<acquire_operation>(session_, queue_key_, place));
        acquires_.push_back(std::make_unique<acquire_operation>(session_, key_, request_));
        auto* const next = acquires_[acquires_.size() - 2].get();
        if (auto const* const before = current_.load()) next->continue_from(*before);
        current_ = next;
    }

    /// Effects: starts the present acquire. It may destroy this.
    void begin(completion& then) noexcept
    try {
        auto* const one = current_.load();
        if (canceled_) one->cancel();
        one->start(then);
    } catch (...) {
        leave();
        finish(failure{holdfast::detail::current_exception_code(), {}});
    }

    void on_queued() noexcept
    {
        auto got = current_outcome();
        if (!got) return finish(std::move(got));
        place_ = got->token;
        auto const in = keep_place();
        if (in == 0) return queue_again();
        acquires_.back()->continue_from(*current_.load(), in);
        current_ = acquires_.back().get();
        begin(taken_);
    }

    void on_taken() noexcept
    {
        leave();
        auto got = current_outcome();
        bool const ended = !got && got.code() == make_error_code(errc::session_expired);
        if (ended && !request_.once && !canceled_) return queue_again();
        finish(std::move(got));
    }

    void queue_again() noexcept
    {
        place_.reset();
        try {
            prepare();
        } catch (...) {
            return finish(failure{holdfast::detail::current_exception_code(), {}});
        }
        begin(queued_);
    }

    /// Returns: what came of the present acquire; without memory for what it says, that.
    [[nodiscard]] result<grant> current_outcome() const noexcept
    try {
        return current_.load()->outcome();
    } catch (...) {
        return failure{holdfast::detail::current_exception_code(), {}};
    }

    /// Effects: the node in the queue stays for as long as the session. Returns: the session; 0 if it has ended.
    [[nodiscard]] std::int64_t keep_place() noexcept
    {
        std::scoped_lock guard{session_->mutex()};
        auto* const node = session_->held().find(*place_);
        if (!node) return 0;
        // mutant: a place in the queue for permits that ends with its lease
        node->ends = boot_clock::time_point::max();
        return session_->session();
    }

    /// Effects: gives the place in the queue up, if there is one.
    void leave() noexcept
    {
        auto const place = std::exchange(place_, std::nullopt);
        if (!place) return;
        std::scoped_lock guard{session_->mutex()};
        if (session_->held().find(*place)) static_cast<void>(give_back(*session_, *place));
    }

    void finish(result<grant> outcome) noexcept
    {
        outcome_.emplace(std::move(outcome));
        done_->complete();
    }

    std::shared_ptr<session_core> const session_;
    std::shared_ptr<node_key const> const key_;
    std::shared_ptr<node_key const> const queue_key_;
    acquire_request const request_;
    step queued_{*this, &permit_operation::on_queued};
    step taken_{*this, &permit_operation::on_taken};
    std::vector<std::unique_ptr<acquire_operation>> acquires_;
    std::atomic<acquire_operation*> current_{nullptr};
    std::atomic<bool> canceled_{false};
    std::optional<owner_token> place_;  // the lease of the queue's lock
    completion* done_ = nullptr;
    std::optional<result<grant>> outcome_;
};

}  // namespace holdfast::zookeeper
