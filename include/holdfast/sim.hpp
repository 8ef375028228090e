// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/language.hpp>

#include <holdfast/core/announcer.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/lease.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/core/name.hpp>
#include <holdfast/core/options.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/lock/announce.hpp>
#include <holdfast/lock/lease_state.hpp>
#include <holdfast/lock/outage.hpp>
#include <holdfast/sim/call.hpp>
#include <holdfast/sim/client.hpp>
#include <holdfast/sim/process.hpp>
#include <holdfast/sim/store.hpp>
#include <holdfast/sim/world.hpp>

#include <chrono>
#include <coroutine>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::sim {

/// A lease of a simulated client, from its grant until it is given back. The shipped `lease_state` judges it. `Client`
/// is `client`, or has the same members.
template <class Client>
class basic_granted_lease {
    using extend_operation = typename Client::extend_operation;
    using release_operation = typename Client::release_operation;

public:
    basic_granted_lease(Client& of, typename Client::key key, std::shared_ptr<lock_options const> options,
                        grant const& got)
        : client_{of}, key_{std::move(key)}
    {
        detail::mutex_state owner;
        owner.options = std::move(options);
        holder one{owner};
        state_.begin(got, one);
        state_.give(one, state_.deadline_for(got.valid_until), nullptr);
        hold_ = state_.holder();
    }

    [[nodiscard]] std::shared_ptr<detail::hold_state> const& hold() const noexcept { return hold_; }

    /// Renews `l` in time, until it is given back, or lost; a loss, and a renewal that failed, are announced.
    static process renew(std::shared_ptr<basic_granted_lease> l)
    {
        auto& host = l->client_.host();
        auto& state = l->state_;
        while (state.holder()) {
            co_await host.sleep_until(host.when(state.next_look()));
            if (!state.holder()) co_return;
            if (!state.holder()->still_held()) co_return l->lose();
            if (!state.due(host.now())) continue;
            state.ask(state.ttl());
            call extending{host};
            extend_operation extend{l->client_.way(), l->key_, state.token(), state.ttl()};
            {
                renewing const now{l->renewing_, extend};
                extend.start(extending);
                co_await extending.ended_by(host.when(state.holder()->deadline()));
            }
            if (!state.holder()) co_return;
            if (!extending.ended()) continue;
            if (extend.outcome() && extend.release_requested())
                static_cast<void>(detail::announce_request(nullptr, *l->hold_));
            if (state.settle(extend.outcome())) co_return l->lose();
            if (state.failing())
                l->warn();
            else
                l->hold_->mark_renewed();
        }
    }

    /// Gives `l` back, if that is not null. If `ec` is not null, it gets the result.
    static process give_back(std::shared_ptr<basic_granted_lease> l, std::error_code* ec)
    {
        auto result = make_error_code(errc::not_owner);
        if (l) {
            bool const was_valid = l->hold_->still_held();
            l->end("gives the lock back, fence");
            call releasing{l->client_.host()};
            release_operation release{l->client_.way(), l->key_};
            release.bind(l->hold_->token);
            release.start(releasing);
            co_await releasing.ended_by();
            result = detail::release_result(was_valid, release.outcome()).code;
            if (result == errc::lease_lost) l->hold_->lose();
        }
        if (ec) *ec = result;
    }

private:
    struct holder final : detail::waiter {
        explicit holder(detail::mutex_state& of) : waiter{of, {}} {}
        void signal(std::uint32_t) noexcept override {}
    };

    /// Lets a lease that ends cancel its renewal, until that ends or its coroutine is destroyed.
    class renewing {
    public:
        renewing(extend_operation*& place, extend_operation& one) noexcept : place_{place} { place_ = &one; }
        renewing(renewing const&) = delete;
        renewing& operator=(renewing const&) = delete;
        ~renewing() { place_ = nullptr; }

    private:
        extend_operation*& place_;
    };

    /// Effects: notes that a renewal has failed after which the lease goes on, and announces that.
    void warn()
    {
        auto warned = hold_->mark_at_risk();
        detail::stop_tokens(nullptr, detail::announcer::kind::tell, warned.own);
        detail::stop_tokens(nullptr, detail::announcer::kind::tell, warned.joint);
    }

    void lose()
    {
        end("HAS LOST THE LOCK, fence");
        hold_->lose();
    }

    /// Effects: notes `why` it is over; nothing more is sent for it except its release.
    void end(std::string_view why)
    {
        client_.host().world().note(why, client_.host().index(), event::nobody, hold_->fence());
        state_.end(nullptr);
        hold_->end();
        if (renewing_) renewing_->cancel();
    }

    Client& client_;
    typename Client::key key_;
    detail::lease_state state_;
    std::shared_ptr<detail::hold_state> hold_;
    extend_operation* renewing_ = nullptr;
};

/// The lease of a `client`.
using granted_lease = basic_granted_lease<client>;

/// A lock in a simulated store, for one process at a time. Its members are awaited, so it is not a lock as the standard
/// defines it; they do what those of `holdfast::mutex` do:
///
///     sim::process work(sim::client& me)
///     {
///         sim::mutex orders{me, "orders/42", {.ttl = 10s}};
///         if (co_await orders.async_try_lock_for(500ms)) {
///             db.write(row, orders.lease().fencing_token());
///             co_await orders.async_unlock();
///         }
///     }
///
/// There is no queue in the process: each object asks the servers. There is no `extend`, and no ZooKeeper. An exception
/// that leaves a process ends the program if no other process awaits it.
class mutex {
public:
    /// Throws: `error` (`misconfigured`) if the name or an option cannot be used.
    mutex(client& of, std::string_view name, lock_options options = {})
        : client_{of}, key_{std::make_shared<redis::lock_keys const>(std::string{name})}
    {
        check_name(name);
        auto const refused = [&](std::chrono::milliseconds ttl) {
            auto why = refused_ttl(ttl, of.options().node_timeout, "node_timeout");
            return why.empty() ? redis::uncovered(ttl, of.options().restart_guard) : why;
        };
        check_options(name, options, refused(options.ttl));
        check_time(name, "stop_margin", options.stop_margin,
                   refused_margin(options.ttl, options.stop_margin, refused(options.ttl - options.stop_margin)));
        if (options.fair && of.way().size() > 1)
            throw detail::error_of(name, {make_error_code(errc::misconfigured), "fair is not for several masters"});
        options_ = std::make_shared<lock_options const>(std::move(options));
    }

    mutex(mutex const&) = delete;
    mutex& operator=(mutex const&) = delete;

    /// Effects: gives the lock back, if it is held, and does not wait for the answer.
    ~mutex()
    {
        if (lease_) client_.keep(granted_lease::give_back(std::move(lease_), nullptr));
    }

    /// A wait for the lock. Requires: this object does not hold it.
    class locking {
    public:
        locking(mutex& of, detail::patience const& p)
            : of_{of},
              asking_{of.client_.host()},
              acquire_{of.client_.way(), of.key_, detail::request_for(*of.options_, p, 0, of.client_.host().now())}
        {
        }

        bool await_ready()
        {
            acquire_.start(asking_);
            return asking_.ended();
        }
        void await_suspend(std::coroutine_handle<> handle) { asking_.ended_by().await_suspend(handle); }

        /// Returns: whether the lock is held. Throws: as `holdfast::mutex`.
        bool await_resume() { return of_.settle(acquire_.outcome()); }

    private:
        mutex& of_;
        call asking_;
        client::acquire_operation acquire_;
    };

    /// Effects: when awaited, waits until the lock is held. Yields `true`.
    [[nodiscard]] locking async_lock() { return {*this, {}}; }
    /// Effects: when awaited, asks once. Yields whether the lock is held.
    [[nodiscard]] locking async_try_lock() { return {*this, {.once = true}}; }
    /// Effects: when awaited, waits for `d` at most. Yields whether the lock is held.
    template <class Rep, class Period>
    [[nodiscard]] locking async_try_lock_for(std::chrono::duration<Rep, Period> const& d)
    {
        return {*this, {.deadline = saturating_add(client_.host().now(), d)}};
    }

    /// Effects: gives the lock back, and waits for the answer. `ec` is set as by `holdfast::mutex`.
    [[nodiscard]] process async_unlock(std::error_code& ec) { return granted_lease::give_back(std::move(lease_), &ec); }
    /// As above, without a result.
    [[nodiscard]] process async_unlock() { return granted_lease::give_back(std::move(lease_), nullptr); }

    /// Returns: a handle to the present hold, for the client's coroutines; an empty one if the lock is not held.
    [[nodiscard]] holdfast::lease lease() const { return lease_ ? holdfast::lease{lease_->hold()} : holdfast::lease{}; }

private:
    bool settle(result<grant> const& got)
    {
        auto& host = client_.host();
        auto const value = got ? got->fence : static_cast<std::uint64_t>(got.code().value());
        auto const* const what = got ? "HAS THE LOCK, fence" : "does not get the lock, code";
        host.world().note(what, host.index(), event::nobody, value);
        if (got.code() == errc::timed_out) return false;
        if (!got) throw detail::error_of(key_->name(), got.why());
        lease_ = std::make_shared<granted_lease>(client_, key_, options_, *got);
        client_.keep(granted_lease::renew(lease_));
        return true;
    }

    client& client_;
    redis::shared_keys key_;
    std::shared_ptr<lock_options const> options_;
    std::shared_ptr<granted_lease> lease_;
};

}  // namespace holdfast::sim
