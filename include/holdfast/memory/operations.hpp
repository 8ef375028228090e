// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/core/operation.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/core/token.hpp>
#include <holdfast/io/reactor.hpp>
#include <holdfast/io/running.hpp>
#include <holdfast/memory/data.hpp>
#include <holdfast/memory/node.hpp>
#include <holdfast/memory/permit_numbers.hpp>
#include <holdfast/quorum/answer.hpp>
#include <holdfast/quorum/extend_machine.hpp>
#include <holdfast/quorum/release_machine.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::memory {

/// Runs a machine that asks once.
template <class Operation, class Machine>
class asking_operation : public Operation, public io::running {
public:
    void start(completion& done) override
    {
        auto const sent = boot_clock::now();
        auto const fault = data_->next_fault();
        // Before the reactor is locked: waiters may be woken, and theirs be locked.
        answer_ = fault.unavailable ? not_asked() : ask(sent) ? quorum::answer::applied() : quorum::answer::refused();
        std::scoped_lock guard{*reactor_};
        reactor_->begin(*this, done);
        runs_ = true;
        arrives_at_ = arrival(fault, sent);
        overdue_at_ = sent + fault.operation_timeout;
        static_cast<void>(machine_.start(sent));
        on_time(boot_clock::now());
    }

    [[nodiscard]] boot_clock::time_point wake_at() const noexcept override
    {
        return std::min(overdue_at_, arrives_at_);
    }

    void on_time(boot_clock::time_point now) noexcept override
    {
        if (!runs_) return;
        if (now >= arrives_at_)
            static_cast<void>(machine_.on_answer(0, answer_, now));
        else if (now >= overdue_at_)
            static_cast<void>(machine_.on_time(now));
        else
            return reactor_->updated(*this);
        end();
    }

protected:
    asking_operation(std::shared_ptr<data> d, std::shared_ptr<io::reactor> runs, shared_key key, Machine machine)
        : data_{std::move(d)}, reactor_{std::move(runs)}, key_{std::move(key)}, machine_{std::move(machine)}
    {
    }

    /// Effects: an operation that has not ended is abandoned.
    ~asking_operation() override
    {
        if (!runs_) return;
        std::scoped_lock guard{*reactor_};
        reactor_->abandon(*this);
    }

    /// Effects: ends it before its answer, unless it has ended.
    void stop() noexcept
    {
        std::scoped_lock guard{*reactor_};
        if (runs_) end();
    }

    [[nodiscard]] data& leases() const noexcept { return *data_; }
    [[nodiscard]] lock_key const& key() const noexcept { return *key_; }
    [[nodiscard]] Machine const& machine() const noexcept { return machine_; }

private:
    /// Effects: asks. Returns: whether the lease is the owner's.
    [[nodiscard]] virtual bool ask(boot_clock::time_point sent) = 0;

    void end() noexcept
    {
        runs_ = false;
        reactor_->ended(*this);
    }

    std::shared_ptr<data> const data_;
    std::shared_ptr<io::reactor> const reactor_;
    shared_key const key_;
    Machine machine_;
    quorum::answer answer_;
    boot_clock::time_point arrives_at_ = never;
    boot_clock::time_point overdue_at_ = never;
    bool runs_ = false;
};

class extend_operation final : public asking_operation<pending_extend, quorum::extend_machine> {
public:
    extend_operation(std::shared_ptr<data> const& d, std::shared_ptr<io::reactor> runs, shared_key key,
                     owner_token const& token, std::chrono::milliseconds ttl)
        : asking_operation{d, std::move(runs), std::move(key), {one_node, ttl}}, token_{token}, ttl_{ttl}
    {
    }

    void cancel() noexcept override { stop(); }

    [[nodiscard]] result<boot_clock::time_point> outcome() const override
    {
        auto const got = machine().outcome();
        if (got.error) return explained(got.error);
        return got.valid_until;
    }

    [[nodiscard]] bool release_requested() const noexcept override { return release_requested_; }

private:
    bool ask(boot_clock::time_point sent) override
    {
        bool const extended = leases().extend(key(), token_, sent, sent + ttl_);
        if (auto const* const slot = slot_of(key()))
            if (leases().agree(*slot, sent, sent + ttl_) != 0 && extended) leases().prolong(*slot, sent + ttl_);
        release_requested_ = extended && leases().release_requested(key().name(), token_);
        return extended;
    }

    owner_token token_;
    std::chrono::milliseconds ttl_;
    bool release_requested_ = false;
};

class release_operation final : public asking_operation<pending_release, quorum::release_machine> {
public:
    release_operation(std::shared_ptr<data> const& d, std::shared_ptr<io::reactor> runs, shared_key key)
        : asking_operation{d, std::move(runs), std::move(key), quorum::release_machine{one_node}}
    {
    }

    void bind(owner_token const& token) noexcept override { token_ = token; }
    void cancel() noexcept override {}
    [[nodiscard]] failure outcome() const override { return explained(machine().outcome()); }

private:
    bool ask(boot_clock::time_point sent) override { return leases().release(key(), token_, sent); }

    owner_token token_;
};

/// Asks something of the leases that is answered at once, or not at all.
template <class T, class F>
class immediate_operation final : public operation<result<T>> {
public:
    immediate_operation(std::shared_ptr<data> d, F ask, errc lost)
        : data_{std::move(d)}, ask_{std::move(ask)}, lost_{lost}
    {
    }

    void start(completion& done) override
    {
        if (auto const fault = data_->next_fault(); fault.unavailable)
            outcome_.emplace(explained(make_error_code(errc::unavailable)));
        else if (T got = ask_(*data_, boot_clock::now()); fault.answer_is_lost)
            outcome_.emplace(explained(make_error_code(lost_)));
        else
            outcome_.emplace(std::move(got));
        done.complete();
    }
    void cancel() noexcept override {}
    [[nodiscard]] result<T> outcome() const override { return *outcome_; }

private:
    std::shared_ptr<data> const data_;
    F const ask_;
    errc const lost_;
    std::optional<result<T>> outcome_;
};

/// Returns: an operation that asks `f(leases, now)`, which returns a `T`. If the answer is lost, it ends with
/// `lost`: `outcome_unknown` of a change that is not to be made twice.
template <class T, class F>
[[nodiscard]] std::unique_ptr<operation<result<T>>> immediate(std::shared_ptr<data> d, F f,
                                                              errc lost = errc::unavailable)
{
    return std::make_unique<immediate_operation<T, F>>(std::move(d), std::move(f), lost);
}

}  // namespace holdfast::memory
