// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/announcer.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/hold_state.hpp>
#include <holdfast/core/lease.hpp>
#include <holdfast/core/lock_stats.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/lock/lease_queue.hpp>
#include <holdfast/lock/lease_state.hpp>
#include <holdfast/lock/mutex_state.hpp>
#include <holdfast/lock/release_call.hpp>
#include <holdfast/lock/turns.hpp>
#include <holdfast/lock/waiter.hpp>

#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// How a lease is given up. It passes to the next waiter if enough of its validity is left, the options are the same,
/// and handoffs are left. Otherwise it is given back to the store. Then no waiter here asks for the lock before the
/// release is answered and the pause for other clients (`release_pause`) is over.
class release_queue : public release_call::receiver, public lease_queue {
public:
    using lease_queue::lease_queue;

    /// Effects: gives up what `owner` holds: to the next waiter, or back to the store; then it waits for the answer,
    /// unless the release may be deferred and no waiter is here. The next holder of the lock may destroy `owner`.
    /// Returns: no error, `not_owner`, `lease_lost`, why the lock is not kept for its `min_hold`, or why the outcome is
    /// not known.
    failure release(mutex_state& owner) noexcept
    {
        if (in_child()) return {make_error_code(errc::not_owner), {}};
        std::unique_lock guard{mutex_};
        bool const may_defer = owner.options->deferred_release;
        auto gone = give_up(guard, owner, lease{owner.held});
        if (!gone.mine) return {make_error_code(errc::not_owner), {}};
        if (!gone.gives_back) return conclude(*gone.mine, {gone.unkept, {}}, nullptr);
        if (gone.call && may_defer && !turns_.next()) return defer(guard, std::move(gone), nullptr);
        guard.unlock();  // `owner` may be gone from here on
        return give_back_now(gone, nullptr);
    }

    /// Effects: as `release`, but only if `hold` is the hold of `owner`, and without a wait if `prepare_release` was
    /// called before. `of` gets the release with its answer, for `finish_release`. `mine` is set to the hold that was
    /// given up. Returns: nothing if an answer will come; otherwise the result.
    [[nodiscard]] std::optional<failure> begin_release(mutex_state& owner, lease const& hold,
                                                       std::shared_ptr<release_call::receiver> of,
                                                       std::shared_ptr<hold_state>& mine) noexcept
    {
        if (in_child()) return failure{make_error_code(errc::not_owner), {}};
        std::unique_lock guard{mutex_};
        auto gone = give_up(guard, owner, hold);
        mine = gone.mine;
        if (!mine) return failure{make_error_code(errc::not_owner), {}};
        if (!gone.gives_back) return conclude(*mine, {gone.unkept, {}}, &renewer().calls);
        guard.unlock();
        if (!gone.call) return give_back_now(gone, &renewer().calls);
        release_call::start(std::move(gone.call), boot_clock::now(), std::move(of));
        return std::nullopt;
    }

    /// Effects: gives up `hold`, if it is the hold of `owner`, and does not wait for the answer, unless there is no
    /// memory. Returns: no error, `lease_lost`, or why the lock is not kept for its `min_hold`; in a forked child,
    /// `not_owner`.
    failure release_hold(mutex_state& owner, lease const& hold) noexcept
    {
        if (in_child()) return {make_error_code(errc::not_owner), {}};
        try {
            prepare_release(owner);
        } catch (std::bad_alloc const&) {  // NOLINT(bugprone-empty-catch): then it waits
        }
        std::unique_lock guard{mutex_};
        auto gone = give_up(guard, owner, hold);
        if (!gone.mine) return {};
        if (!gone.gives_back) return conclude(*gone.mine, {gone.unkept, {}}, &renewer().calls);
        if (gone.call) return defer(guard, std::move(gone), &renewer().calls);
        guard.unlock();
        return give_back_now(gone, &renewer().calls);
    }

    /// Effects: acts on the answer of `call`, which gave up `mine`. Tokens of a lost lease are stopped in a thread of
    /// `background`, or in this one if that is null. Returns: the result of the release.
    failure finish_release(release_call& call, hold_state& mine, announcer* background) noexcept
    {
        note_others(call);
        given_back(call.terms.keeps_others_waiting);
        return conclude(mine, release_result(call.terms.was_valid, call.outcome()), background,
                        call.terms.ended_in_store ? loss::taken : loss::deadline, call.begun());
    }

protected:
    /// What was given up.
    struct given_up {
        std::shared_ptr<hold_state> mine;      ///< null: it was not held
        bool gives_back = false;               ///< false: the lease was handed on or is kept, or was none
        release_terms terms{};                 ///< of the release
        std::unique_ptr<release_call> call{};  ///< the release, to be started; null: one is to be lent
        std::error_code unkept{};              ///< why the lease is not kept although it should be
    };

    /// Effects: gives back what was granted to `owner` and cannot be used; unlocks.
    void give_up_unused(locked& guard, mutex_state& owner) noexcept
    {
        auto gone = let_go(guard, owner);
        if (gone.call) return start_deferred(guard, std::move(gone.call));
        if (!gone.gives_back) return;
        renewer().begin_service();  // the client does not end meanwhile
        guard.unlock();             // the caller is the thread that was to have the lock
        wait_for_release(gone, [&](release_call const& call) {
            note_others(call);
            given_back(call.terms.keeps_others_waiting);
        });
        renewer().end_service();
    }

    /// Effects: counts the end of the hold of `owner`, which is about to be given up, unless its lease is lost.
    void count_end(mutex_state const& owner) noexcept
    {
        if (owner.held && owner.held == lease_.state().holder())
            reports().seen.ended(boot_clock::now() - owner.held->since());
    }

    /// Effects: sends the release `call`, and does not wait for its answer; unlocks. A waiter that is here asks after
    /// the answer, and after the pause for others that the answer says are waiting. One that comes later asks at once.
    void start_deferred(locked& guard, std::unique_ptr<release_call> call) noexcept
    {
        bool const keeps = call->terms.keeps_others_waiting;
        bool const at_answer = call->terms.keeps_others_waiting = keeps && turns_.next();
        // Before anybody else can see that nothing is held, and end the client.
        at_answer ? renewer().begin_service() : renewer().begin_late_service();
        guard.unlock();
        release_call::start(std::move(call), boot_clock::now(),
                            std::static_pointer_cast<release_queue>(this->shared_from_this()));
        if (at_answer) return;
        given_back(keeps);
    }

    /// Effects: takes the lock from `owner`. Returns: what was given up. If the lease was handed on, or should be kept,
    /// the mutex is no longer held.
    given_up let_go(locked& guard, mutex_state& owner) noexcept
    {
        given_up gone{.mine = std::exchange(owner.held, nullptr)};
        auto const& mine = gone.mine;
        if (!mine) return gone;
        auto call = std::move(owner.releasing);
        auto const deadline = mine->deadline();
        bool const kept = lease_.state().kept();
        bool const current = mine == lease_.state().holder();
        bool const in_time = current && mine->still_held();
        auto& terms = gone.terms;
        terms.was_valid = in_time && store().still_leased(lease_.state().token());
        terms.ended_in_store = in_time;
        auto const release_at = terms.was_valid ? lease_.state().earliest_release() : boot_clock::time_point{};
        mine->end();
        if (release_at > boot_clock::now()) {
            gone.unkept = keep(guard, std::move(call), deadline, release_at);
            return gone;
        }
        // The result of an extend that is under way is not known. Others have waited for a lease that was kept.
        if (auto* const next = terms.was_valid && !kept && !lease_.extending() ? turns_.next() : nullptr;
            next && lease_.state().may_pass_to(*next, deadline)) {
            // `max_hold` starts again for the next holder.
            bool const limited = lease_.state().options()->max_hold.has_value();
            lease_.state().count_handoff();
            lease_.state().give(*next, deadline, std::move(call));
            reports().seen.handed_over();
            if (limited) lease_.schedule();
            turns_.hand_on(*next);
            guard.unlock();
            next->signal(waiter::its_turn);
            return gone;
        }
        terms.keeps_others_waiting = current || turns_.now() == turns::state::idle;
        if (current) lease_.end(turns_.next());  // nothing is sent for it after the release
        if (terms.keeps_others_waiting) turns_.release();
        gone.gives_back = true;
        gone.call = std::move(call);
        if (gone.call) gone.call->terms = terms;
        return gone;
    }

private:
    /// Effects: gives back what was given up, and calls `f` with the release when that is answered.
    template <class F>
    void wait_for_release(given_up const& gone, F const& f) noexcept
    {
        auto const wait = [&](release_call& call) {
            call.start(boot_clock::now());
            call.wait(store(), key());
            f(call);
        };
        if (gone.call) return wait(*gone.call);
        release_call::lend(store(), key(), [&](release_call& call) {
            call.terms = gone.terms;
            call.bind(gone.mine->token);
            wait(call);
        });
    }

    /// Effects: gives back what was given up, and waits for the answer. Returns: as `finish_release`.
    failure give_back_now(given_up const& gone, announcer* background) noexcept
    {
        failure said;
        wait_for_release(gone, [&](release_call& call) { said = finish_release(call, *gone.mine, background); });
        return said;
    }

    /// Effects: gives up `hold`, if it is the hold of `owner`. See `let_go`.
    given_up give_up(locked& guard, mutex_state& owner, lease const& hold) noexcept
    {
        if (lease{owner.held} != hold) return {};
        count_end(owner);
        return let_go(guard, owner);
    }

    /// Effects: keeps the lease, which ends at `deadline`, until `release_at`, when `call` gives it back; unlocks.
    /// Returns: no error; or why it cannot be kept, as without memory: then it ends with its ttl.
    std::error_code keep(locked& guard, std::unique_ptr<release_call> call, boot_clock::time_point deadline,
                         boot_clock::time_point release_at) noexcept
    try {
        auto hold = std::make_shared<hold_state>();
        hold->unused = true;
        auto options = lease_.state().options();
        if (options->on_error)  // what it refers to may end before the lease
            options = std::make_shared<lock_options const>(without_hook(*options));
        kept_ = std::make_unique<mutex_state>();
        kept_->held = hold;
        kept_->releasing = std::move(call);
        bool const asks =
            lease_.keep(std::move(hold), std::move(options), deadline, release_at, this->shared_from_this());
        guard.unlock();
        if (asks) store().flush(key());  // the process may end when `unlock()` has returned
        return {};
    } catch (...) {  // no memory
        auto const why = current_exception_code();
        lease_.end(turns_.next());
        pass_on(guard);
        return why;
    }

    void give_back_kept(locked& guard) noexcept override
    {
        auto const owner = std::move(kept_);
        if (auto gone = let_go(guard, *owner); gone.call) start_deferred(guard, std::move(gone.call));
    }

    /// Effects: sends the release of what was given up and does not wait for its answer. A loss is announced as by
    /// `finish_release`; unlocks. Returns: no error, or `lease_lost`.
    failure defer(locked& guard, given_up gone, announcer* background) noexcept
    {
        bool const was_valid = gone.terms.was_valid;
        auto const how = gone.terms.ended_in_store ? loss::taken : loss::deadline;
        start_deferred(guard, std::move(gone.call));
        return conclude(*gone.mine, release_result(was_valid, {}), background, how);
    }

    /// Effects: handles the answer to a release that no thread waits for. The calling thread may hold this mutex, or
    /// another queue's: a send for that queue may end the operations on the same connection.
    void released(std::unique_ptr<release_call> call) noexcept override
    {
        note_others(*call);
        if (!call->terms.keeps_others_waiting) return renewer().end_late_service();
        release_answered_ = true;
        lease_.poke();
        renewer().end_service();
    }

    /// Effects: notes whether the answer to `call` says that others wait. May be called without the mutex.
    void note_others(release_call const& call) noexcept
    {
        if (call.others_wait()) turns_.others_wait(call.begun(), boot_clock::now());
    }

    /// Effects: the lock was given back. If `kept_others_waiting`, the next waiter may ask.
    void given_back(bool kept_others_waiting) noexcept
    {
        std::unique_lock guard{mutex_};
        turns_.released(boot_clock::now());
        if (kept_others_waiting) pass_on(guard);
    }
};

}  // namespace holdfast::detail
