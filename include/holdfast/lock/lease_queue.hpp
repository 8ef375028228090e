// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/lock_stats.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/core/small_mutex.hpp>
#include <holdfast/core/token.hpp>
#include <holdfast/lock/announce.hpp>
#include <holdfast/lock/client_parts.hpp>
#include <holdfast/lock/failure_reports.hpp>
#include <holdfast/lock/mutex_state.hpp>
#include <holdfast/lock/release_call.hpp>
#include <holdfast/lock/renewal.hpp>
#include <holdfast/lock/renewed_lease.hpp>
#include <holdfast/lock/renewer.hpp>
#include <holdfast/lock/report.hpp>
#include <holdfast/lock/schedule.hpp>
#include <holdfast/lock/turns.hpp>
#include <holdfast/lock/waiter.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// What a client knows of one lock: whose turn it is here (`turns`) and the lease of the holder (`renewed_lease`). This
/// class keeps the lease; `release_queue` adds how it is given back, `wait_queue` how it is acquired. Lock order: this
/// mutex, then the renewer's or the store's. User code is called with none of them held.
class lease_queue : public scheduled, public std::enable_shared_from_this<lease_queue> {
public:
    lease_queue(std::shared_ptr<client_parts> client, shared_key key) : lease_{std::move(client), std::move(key)} {}

    [[nodiscard]] std::string const& name() const noexcept { return key()->name(); }
    [[nodiscard]] lock_store& store() const noexcept { return *lease_.client().store; }
    [[nodiscard]] shared_key const& key() const noexcept { return lease_.key(); }
    [[nodiscard]] detail::renewer& renewer() const noexcept { return *lease_.client().renews; }
    [[nodiscard]] bool in_child() const noexcept { return lease_.client().origin.in_child(); }
    [[nodiscard]] failure_reports& reports() const noexcept { return lease_.client().reports; }

    /// Effects: asks for a lease of `ttl` from now on for the hold of `owner`; later renewals use that ttl.
    /// One call at a time asks; the others wait for it. Returns: no error, `not_owner`, `lease_lost`, also as soon as
    /// the lease ends meanwhile, or why the lease was not extended. In the last case it runs on as before, but no
    /// longer than `ttl` until it is renewed.
    std::error_code extend(mutex_state& owner, std::chrono::milliseconds ttl)
    {
        std::unique_lock guard{mutex_};
        auto const mine = owner.held;
        if (!mine) return make_error_code(errc::not_owner);
        // After a wait `owner` may be gone.
        while (mine == lease_.state().holder() && lease_.extending()) {
            auto const other = lease_.under_way();
            guard.unlock();
            other->settled.wait(false);
            guard.lock();
        }
        if (mine != lease_.state().holder() || !mine->still_held()) return make_error_code(errc::lease_lost);
        auto const extending = lease_.extend(ttl);
        guard.unlock();
        extending->wait(store(), key());
        guard.lock();
        extending->settled.test_and_set();
        extending->settled.notify_all();
        return settle(std::move(guard), *extending, nullptr);
    }

    /// Returns: whether the object of `owner` was destroyed.
    [[nodiscard]] bool destroyed(mutex_state const& owner) const noexcept
    {
        std::scoped_lock guard{mutex_};
        return !owner.client;
    }

    /// Effects: a user is told of the hold of `owner`. In a forked child none: the hold is the parent's.
    void begin_use(mutex_state const& owner) const noexcept
    {
        if (in_child()) return;
        std::scoped_lock guard{mutex_};
        if (owner.held) owner.held->unused = false;
    }

    /// Effects: no thread need wait when the hold of `owner` is given back. Throws: `std::bad_alloc`.
    void prepare_release(mutex_state& owner)
    {
        auto const lacks = [&] { return owner.held && !owner.releasing; };
        if (std::scoped_lock guard{mutex_}; !lacks()) return;
        auto made = make_release();
        std::scoped_lock guard{mutex_};
        if (!lacks()) return;
        made->bind(owner.held->token);
        owner.releasing = std::move(made);
    }

    /// Returns: whether it keeps a lease until its `min_hold` is over.
    [[nodiscard]] bool keeps() const noexcept
    {
        std::scoped_lock guard{mutex_};
        return kept_ != nullptr;
    }

    /// Effects: starts the thread of the client, if it does not run yet. Returns: false, and does nothing, if the
    /// object of `owner` was destroyed: the client may have ended. Throws: as `renewer::ensure_running`.
    [[nodiscard]] bool ensure_running(mutex_state const& owner) const
    {
        std::scoped_lock guard{mutex_};  // the client does not end meanwhile
        if (owner.client) renewer().ensure_running();
        return owner.client != nullptr;
    }

    /// Effects: the thread of the client serves, and does not end, until `renewer::end_service`. Returns: false, and it
    /// does not, if the object of `owner` was destroyed.
    [[nodiscard]] bool begin_service(mutex_state const& owner) const noexcept
    {
        std::scoped_lock guard{mutex_};
        if (owner.client) renewer().begin_service();
        return owner.client != nullptr;
    }

    /// Returns: the hold of `owner`; null if it has none.
    [[nodiscard]] std::shared_ptr<hold_state> hold_of(mutex_state const& owner) const
    {
        return in_child() ? nullptr : (static_cast<void>(std::scoped_lock{mutex_}), owner.held);
    }

    /// Returns: the owner token of the hold of `owner`; nothing if it has none. If its lease is over, one that owns
    /// nothing.
    [[nodiscard]] std::optional<owner_token> token_of(mutex_state const& owner) const
    {
        if (in_child()) return std::nullopt;
        std::scoped_lock guard{mutex_};
        if (!owner.held) return std::nullopt;
        return owner.held == lease_.state().holder() ? lease_.state().token() : owner_token{};
    }

    void on_due(boot_clock::time_point now, bool alarmed) noexcept override
    {
        auto guard = settle_release();
        auto const renewed = lease_.answered();
        if (!lease_.state().holder()) return;
        // An alarm goes before an answer, which says that the lease is lost, and not that its session has ended.
        auto const how = alarmed ? lease_.lost_in_store() : renewed ? std::nullopt : lease_.lost();
        if (how) return lose(guard, *how, &renewer().calls);
        if (renewed) {  // the answer says when the next look is due
            settle(std::move(guard), *renewed, &renewer().calls);
            return;
        }
        if (now >= lease_.state().release_at()) return give_back_kept(guard);
        alarmed || lease_.state().due(now) ? lease_.renew(this->shared_from_this()) : lease_.schedule();
    }

protected:
    using locked = std::unique_lock<small_mutex>;

    /// Effects: gives back the lease, which was kept for `min_hold`; unlocks.
    virtual void give_back_kept(locked& guard) noexcept = 0;

    std::unique_ptr<release_call> make_release() { return std::make_unique<release_call>(store().release(key())); }

    /// Returns: whether the hold that `one` wants needs a release from its beginning, as no thread may wait for that.
    [[nodiscard]] static bool needs_release(waiter const& one) noexcept
    {
        auto const& options = *one.options;
        return one.limit.told_later || options.deferred_release || options.min_hold.count() != 0;
    }

    /// Effects: gives the turn to the next waiter; unlocks.
    void pass_on(locked& guard) noexcept
    {
        auto* const next = turns_.pass_on();
        guard.unlock();
        if (next) next->signal(waiter::its_turn);
    }

    /// Effects: if `said` is a loss, announces it to those who know `mine`; counts the release, which began at `begun`,
    /// or just now, and tells the observer of it, or of a loss that it found, which was as `how` says. Returns: `said`.
    failure conclude(hold_state& mine, failure said, announcer* background, loss how = loss::deadline,
                     std::optional<boot_clock::time_point> begun = std::nullopt) noexcept
    {
        bool const lost = said.code == errc::lease_lost;
        bool const known = mine.lost();
        if (lost) announce_loss(background, mine);
        if (lost && known) return said;  // it was told then
        lost ? reports().seen.lost(how) : reports().seen.released();
        reports().seen.tell(background, [&] {
            return lock_event{.what = lost ? lock_event::kind::lost : lock_event::kind::released,
                              .lock_name = name(),
                              .duration = (begun ? *begun : boot_clock::now()) - mine.since(),
                              .code = said.code,
                              .server = said.server};
        });
        return said;
    }

private:
    void lose(locked& guard, loss how, announcer* background) noexcept
    {
        auto const why = lease_.explain(how);
        auto const lost = lease_.state().holder();
        auto const options = lease_.state().options();
        auto const held_for = boot_clock::now() - lost->since();
        if (lease_.state().kept()) {  // its user was told that it is over
            lost->end();
            return give_back_kept(guard);  // a server may still have it, or have voted for it
        }
        reports().seen.ended(held_for);
        reports().seen.lost(how);
        static_cast<void>(lost->mark_lost());  // before another can get the lock, or a release can tell of the loss
        lease_.end(turns_.next());
        pass_on(guard);
        announce_loss(background, *lost);
        report(hook_of(background, options), name(), why);
        reports().seen.tell(background, [&] {
            return lock_event{.what = lock_event::kind::lost,
                              .lock_name = name(),
                              .duration = held_for,
                              .code = why.code,
                              .server = why.server};
        });
    }

    /// Effects: tells the holder, once, that it is asked to release the lock.
    void tell_request(announcer* background, hold_state& holder) noexcept
    {
        if (!announce_request(background, holder)) return;
        auto const held_for = boot_clock::now() - holder.since();
        reports().seen.tell(background, [&] {
            return lock_event{.what = lock_event::kind::release_requested, .lock_name = name(), .duration = held_for};
        });
    }

    /// Effects: acts on the answer that has come to a release for which the next waiter waits. Returns: the mutex,
    /// locked.
    [[nodiscard]] locked settle_release() noexcept
    {
        std::unique_lock guard{mutex_};
        if (release_answered_.exchange(false)) {
            turns_.released(boot_clock::now());
            pass_on(guard);
            guard.lock();
        }
        return guard;
    }

    /// Effects: acts on the answer to `one`; the user is told in a thread of `background`, or in this one if that is
    /// null. A lease that is kept has none to be told.
    std::error_code settle(locked guard, renewal const& one, announcer* background) noexcept
    {
        if (!lease_.awaits(one)) return make_error_code(errc::lease_lost);
        auto const options = lease_.state().options();
        auto outcome = one.outcome();
        bool const requested = outcome && one.release_requested();
        if (auto const how = lease_.settle(outcome)) {
            lose(guard, *how, background);
            return make_error_code(errc::lease_lost);
        }
        auto& holder = *lease_.state().holder();
        hold_state::warnings warned;
        if (!outcome)
            warned = holder.mark_at_risk();
        else
            holder.mark_renewed();
        bool const kept = lease_.state().kept();
        auto const asked = requested && !kept ? lease_.state().holder() : nullptr;
        if (asked) lease_.state().end_handoffs();
        guard.unlock();
        stop_tokens(background, announcer::kind::tell, warned.own);
        stop_tokens(background, announcer::kind::tell, warned.joint);
        if (asked) tell_request(background, *asked);
        auto const hook = hook_of(background, options);
        outcome ? reports().went_well(hook, name()) : reports().failed(hook, name(), outcome.why());
        outcome ? reports().seen.renewed() : reports().seen.renewal_failed();
        if (!kept)
            reports().seen.tell(background, [&] {
                return lock_event{.what = outcome ? lock_event::kind::renewed : lock_event::kind::at_risk,
                                  .lock_name = name(),
                                  .code = outcome.code(),
                                  .server = outcome ? std::string{} : outcome.why().server};
            });
        report_servers(store(), hook);
        return outcome.code();
    }

protected:
    // NOLINTBEGIN(*-non-private-member-variables-in-classes)
    [[no_unique_address]] renewed_lease lease_;
    mutable small_mutex mutex_;
    std::unique_ptr<mutex_state> kept_;  // see `min_hold`
    [[no_unique_address]] turns turns_;
    std::atomic<bool> release_answered_{false};
    // NOLINTEND(*-non-private-member-variables-in-classes)
};

}  // namespace holdfast::detail
