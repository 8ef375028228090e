// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/core/operation.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/core/token.hpp>
#include <holdfast/core/validity.hpp>
#include <holdfast/io/reactor.hpp>
#include <holdfast/io/running.hpp>
#include <holdfast/memory/data.hpp>
#include <holdfast/memory/permit_numbers.hpp>
#include <holdfast/memory/request_fault.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::memory {

/// Asks the leases once, at its start; what became of that is told when the answer comes, or is overdue.
template <class Operation>
class asking_operation : public Operation, public io::running {
public:
    asking_operation(asking_operation const&) = delete;
    asking_operation& operator=(asking_operation const&) = delete;

    void start(completion& done) override
    {
        auto const sent = boot_clock::now();
        auto const fault = data_->next_fault();
        auto const arrives_at = fault.arrival(sent);
        auto const overdue_at = sent + fault.operation_timeout;
        ends_at_ = std::min(arrives_at, overdue_at);
        if (fault.unavailable)
            why_ = make_error_code(errc::unavailable);
        else if (ask(*data_, sent); arrives_at > overdue_at)
            why_ = make_error_code(errc::outcome_unknown);
        // Not locked before: waiters may have been woken, and their reactors be locked.
        std::scoped_lock guard{*reactor_};
        reactor_->begin(*this, done);
        runs_ = true;
        on_time(boot_clock::now());
    }

    void cancel() noexcept override {}

    [[nodiscard]] boot_clock::time_point wake_at() const noexcept override { return ends_at_; }

    void on_time(boot_clock::time_point now) noexcept override
    {
        if (!runs_) return;
        if (now < ends_at_) return reactor_->updated(*this);
        end();
    }

protected:
    asking_operation(std::shared_ptr<data> d, std::shared_ptr<io::reactor> runs)
        : data_{std::move(d)}, reactor_{std::move(runs)}
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
        if (!runs_) return;
        if (!why_) why_ = make_error_code(errc::outcome_unknown);
        end();
    }

    /// Returns: why there is no answer; no error if there is one.
    [[nodiscard]] std::error_code why() const noexcept { return why_; }

private:
    /// Effects: asks.
    virtual void ask(data& leases, boot_clock::time_point sent) = 0;

    void end() noexcept
    {
        runs_ = false;
        reactor_->ended(*this);
    }

    std::shared_ptr<data> const data_;
    std::shared_ptr<io::reactor> const reactor_;
    boot_clock::time_point ends_at_ = request_fault::never;
    std::error_code why_;
    bool runs_ = false;
};

class extend_operation final : public asking_operation<pending_extend> {
public:
    extend_operation(std::shared_ptr<data> d, std::shared_ptr<io::reactor> runs, shared_key key,
                     owner_token const& token, std::chrono::milliseconds ttl)
        : asking_operation{std::move(d), std::move(runs)}, key_{std::move(key)}, token_{token}, ttl_{ttl}
    {
    }

    void cancel() noexcept override { stop(); }

    [[nodiscard]] result<boot_clock::time_point> outcome() const override
    {
        if (why()) return explained(why());
        if (!extended_) return explained(make_error_code(errc::lease_lost));
        if (boot_clock::now() >= until_) return explained(make_error_code(errc::outcome_unknown));
        return until_;
    }

    [[nodiscard]] bool release_requested() const noexcept override { return release_requested_; }

private:
    void ask(data& leases, boot_clock::time_point sent) override
    {
        until_ = valid_until(sent, ttl_);
        extended_ = leases.extend(*key_, token_, sent, sent + ttl_);
        if (auto const* const slot = dynamic_cast<slot_key const*>(key_.get()))
            if (leases.agree(*slot, sent, sent + ttl_) != 0 && extended_) leases.prolong(*slot, sent + ttl_);
        release_requested_ = extended_ && leases.release_requested(key_->name(), token_);
    }

    shared_key const key_;
    owner_token const token_;
    std::chrono::milliseconds const ttl_;
    boot_clock::time_point until_{};
    bool extended_ = false;
    bool release_requested_ = false;
};

class release_operation final : public asking_operation<pending_release> {
public:
    release_operation(std::shared_ptr<data> d, std::shared_ptr<io::reactor> runs, shared_key key)
        : asking_operation{std::move(d), std::move(runs)}, key_{std::move(key)}
    {
    }

    void bind(owner_token const& token) noexcept override { token_ = token; }

    [[nodiscard]] failure outcome() const override
    {
        return explained(why() || released_ ? why() : make_error_code(errc::not_owner));
    }

private:
    void ask(data& leases, boot_clock::time_point sent) override { released_ = leases.release(*key_, token_, sent); }

    shared_key const key_;
    owner_token token_;
    bool released_ = false;
};

/// Asks `ask(leases, now)`, which returns a `T`.
template <class T, class F>
class question_operation final : public asking_operation<operation<result<T>>> {
    using base = asking_operation<operation<result<T>>>;

public:
    question_operation(std::shared_ptr<data> d, std::shared_ptr<io::reactor> runs, F ask)
        : base{std::move(d), std::move(runs)}, ask_{std::move(ask)}
    {
    }

    [[nodiscard]] result<T> outcome() const override
    {
        if (base::why()) return explained(base::why());
        return *answer_;
    }

private:
    void ask(data& leases, boot_clock::time_point sent) override { answer_.emplace(ask_(leases, sent)); }

    F const ask_;
    std::optional<T> answer_;
};

}  // namespace holdfast::memory
