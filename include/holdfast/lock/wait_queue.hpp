// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/lock_stats.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/core/validity.hpp>
#include <holdfast/lock/announce.hpp>
#include <holdfast/lock/joint_request.hpp>
#include <holdfast/lock/mutex_state.hpp>
#include <holdfast/lock/outage.hpp>
#include <holdfast/lock/release_call.hpp>
#include <holdfast/lock/release_queue.hpp>
#include <holdfast/lock/report.hpp>
#include <holdfast/lock/turns.hpp>
#include <holdfast/lock/waiter.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// The waiters of this process for one lock of a client, first come, first served. A waiter is a thread (`lock_call`)
/// or an asynchronous call (`async_lock_call`); both do what `step` says.
class wait_queue final : public release_queue {
public:
    using release_queue::release_queue;

    /// Effects: handles the arrival of `one`; the caller then calls `step` for it. If its object is destroyed from now
    /// on, it is cancelled, and told so before the client ends. Throws: `error` (`operation_canceled`) if it was
    /// destroyed before; `std::bad_alloc`.
    void enter(waiter& one)
    {
        std::scoped_lock guard{mutex_};
        if (!one.owner->client)
            throw error_of(name(), {std::make_error_code(std::errc::operation_canceled), "the mutex was destroyed"});
        if (needs_release(one)) one.releasing = make_release();
        if (turns_.is_first(one)) lease_.prepare(this->weak_from_this());
        turns_.enter(one);
    }

    /// What a waiter does next.
    struct next_step {
        /// When `step` must be called again, unless the waiter is signalled before.
        boot_clock::time_point at = boot_clock::time_point::max();
        bool asks = false;  ///< its request is under way
    };

    /// Effects: does what is due for `one`, which has collected `signals`; see the table at `waiter`. One call at a
    /// time for each waiter.
    [[nodiscard]] next_step step(waiter& one, std::uint32_t signals) noexcept
    {
        std::unique_lock guard{mutex_};
        one.heard |= signals;
        auto const now = boot_clock::now();
        bool const told = !one.was_in_line || (one.heard & waiter::its_turn) != 0;
        switch (one.now.load()) {
        case waiter::stage::in_line:
            if (!one.canceled && now < one.limit.deadline) return {one.limit.deadline};
            turns_.give_up(one);
            return {};
        case waiter::stage::first: return told ? ask(guard, one, now) : next_step{};
        case waiter::stage::asking:
            return (one.heard & waiter::answered) != 0 ? settle(guard, one) : look(guard, one, now);
        case waiter::stage::granted:
            if (!told) return {};
            one.now = waiter::stage::ended;
            if (one.owner->client) return {};
            count_end(*one.owner);  // it was counted when it was handed over
            give_up_grant(guard, one);
            return {};
        case waiter::stage::ended: return {};
        }
        return {};
    }

    // These tell the observer what becomes of `one`: in a thread of `background`, or in this one if that is null. They
    // are called by the thread that runs `step` for it.

    /// Effects: tells that it begins. To be called before `enter`.
    void tell_attempt(waiter& one, announcer* background) noexcept
    {
        one.tells_wait.store(!one.limit.once && reports().seen.observed(), std::memory_order_relaxed);
        reports().seen.tell(background,
                            [&] { return lock_event{.what = lock_event::kind::attempted, .lock_name = name()}; });
    }

    /// Effects: if it has to wait for another holder, tells that, once.
    void tell_wait(waiter& one, announcer* background) noexcept
    {
        if (!one.tells_wait.load(std::memory_order_relaxed)) return;
        bool const outlasted = one.why_not && one.why_not->code == errc::timed_out;
        if (!one.was_in_line && (one.heard & waiter::another_has_it) == 0 && !outlasted) return;
        one.tells_wait.store(false, std::memory_order_relaxed);
        reports().seen.tell(background,
                            [&] { return lock_event{.what = lock_event::kind::waiting, .lock_name = name()}; });
    }

    /// Effects: counts its end, and tells it. Called when it has ended.
    void tell_end(waiter& one, announcer* background) noexcept
    {
        tell_wait(one, background);
        auto const why = one.code();
        auto const took = boot_clock::now() - one.since;
        reports().seen.waited(took, why);
        reports().seen.tell(background, [&] {
            return lock_event{.what = why ? lock_event::kind::not_acquired : lock_event::kind::acquired,
                              .lock_name = name(),
                              .duration = took,
                              .handed_over = !why && one.handed_on,
                              .code = why,
                              .server = one.why_not ? one.why_not->server : std::string{}};
        });
    }

    /// Effects: cancels `one`, and signals it. May be called from any thread while it has not ended. No effect in a
    /// forked child: the wait is the parent's.
    void cancel(waiter& one) noexcept
    {
        if (in_child()) return;
        {
            std::scoped_lock guard{mutex_};
            if (one.ended() || std::exchange(one.canceled, true)) return;
            if (one.now == waiter::stage::asking) one.asking->cancel();
        }
        one.signal(waiter::look);
    }

    /// Effects: notes that the object of `owner` is destroyed, and cancels its waiters. Returns: its client, which does
    /// not end before the caller lets go of it; null if that was noted before.
    [[nodiscard]] std::shared_ptr<void const> abandon(mutex_state& owner) noexcept
    {
        std::scoped_lock guard{mutex_};
        auto client = std::move(owner.client);
        turns_.for_each_of(owner, [](waiter& one) {
            if (one.ended()) return;
            one.canceled = true;
            if (one.now == waiter::stage::asking) one.asking->cancel();
            one.signal(waiter::look);
        });
        return client;
    }

private:
    next_step ask(locked& guard, waiter& one, boot_clock::time_point now) noexcept
    {
        if (auto const at = turns_.pause(one, now)) return {*at};
        if (!turns_.may_ask(one, now)) {
            pass_on(guard);
            return {};
        }
        try {
            begin_asking(one);
            one.look_pause = std::chrono::seconds{1};
            return {look_later(one, now), true};
        } catch (...) {
            one.thrown = std::current_exception();
            one.now = waiter::stage::ended;
            pass_on(guard);
            return {};
        }
    }

    void begin_asking(waiter& one)
    {
        auto request =
            request_for(*one.options, one.limit, lease_.state().handoffs_for(one), turns_.unavailable_since(one));
        if (!request.in_order) request.leaves_free = turns_.leaves_free();
        request.since = turns_.place_of(one, boot_clock::now());
        one.patience_in_outage = request.unavailable_after;
        one.asking = one.limit.joint ? one.limit.joint->part(key(), request) : store().acquire(key(), request);
        one.now = waiter::stage::asking;
        one.asking->start(one);
    }

    /// Effects: checks now and then, while `one` waits, whether the obstacle is something other than a lock; that is
    /// reported once.
    next_step look(locked& guard, waiter& one, boot_clock::time_point now) noexcept
    {
        if (now < one.look_at) return {one.look_at, true};
        one.look_pause = std::min<boot_clock::duration>(2 * one.look_pause, std::chrono::minutes{1});
        auto const at = look_later(one, now);
        tell_obstacle(guard, one);
        return {at, true};
    }

    /// Returns: when to check that next; never if it would be told to no hook. What was told to another may be dropped.
    static boot_clock::time_point look_later(waiter& one, boot_clock::time_point now) noexcept
    {
        return one.look_at = one.options->on_error ? now + one.look_pause : boot_clock::time_point::max();
    }

    [[nodiscard]] bool tells_obstacle(waiter const& one) const noexcept
    {
        return one.options->on_error && !told_of_obstacle_;
    }

    /// The hook is called in a thread that is started for it: it may be slow, and may ask for the lock.
    void tell_obstacle(locked& guard, waiter const& one) noexcept
    try {
        auto const what = tells_obstacle(one) ? one.asking->obstacle() : std::nullopt;
        if (!what) return;
        announcer::call tell{[me = std::weak_ptr{this->shared_from_this()}, of = std::weak_ptr{one.options},
                              e = error_of(name(), *what)]() noexcept {
            if (tell_if_alive(of, e)) return;
            if (auto const queue = me.lock()) static_cast<wait_queue&>(*queue).obstacle_not_told();
        }};
        told_of_obstacle_ = true;
        guard.unlock();
        renewer().calls.report(std::move(tell));
        guard.lock();
    } catch (std::bad_alloc const&) {  // NOLINT(bugprone-empty-catch): it is told next time
    }

    /// The lock that it was told to was destroyed before.
    void obstacle_not_told() noexcept
    {
        std::scoped_lock guard{mutex_};
        told_of_obstacle_ = false;
    }

    /// Effects: acts on the answer to the request of `one`.
    next_step settle(locked& guard, waiter& one) noexcept
    try {
        tell_obstacle(guard, one);
        auto const got = one.asking->outcome();
        // The answer may have come late: a store that fixes the lease does not show how late.
        bool const shown = got && got->ttl.count() == 0;
        auto const now = boot_clock::now();
        turns_.asked(one, got.code(), shown ? sent_at(got->valid_until, one.options->ttl) : now, now);
        auto const asked = std::move(one.asking);
        one.now = waiter::stage::ended;
        if (!got) {
            one.why_not = got.why();
            pass_on(guard);
            return {};
        }
        auto& lease = lease_.state();
        lease.begin(*got, one);
        lease.give(one, lease.deadline_for(got->valid_until), nullptr);
        if (!one.owner->client) {
            give_up_grant(guard, one);
            return {};
        }
        if (lease.too_short()) {
            give_up_grant(guard, one);
            one.why_not = too_short(one.options->stop_margin, got->ttl);
            return {};
        }
        reports().seen.granted();
        lease_.schedule();
        return {};
    } catch (...) {  // no memory for the text of a failure
        one.thrown = std::current_exception();
        one.now = waiter::stage::ended;
        pass_on(guard);
        return {};
    }

    /// Returns: the failure of a grant whose lease, of `granted`, is too short for `margin`.
    [[nodiscard]] static failure too_short(std::chrono::milliseconds margin, std::chrono::milliseconds granted) noexcept
    {
        failure why{make_error_code(errc::misconfigured), {}};
        try {
            why.detail = "stop_margin is " + std::to_string(margin.count()) +
                         " ms, and at most a third is allowed of the lease that the store grants, " +
                         std::to_string(granted.count()) + " ms";
        } catch (std::bad_alloc const&) {  // NOLINT(bugprone-empty-catch): the code says enough
        }
        return why;
    }

    /// Effects: gives back what `one` was granted, and cannot use: its object was destroyed meanwhile.
    void give_up_grant(locked& guard, waiter& one) noexcept
    {
        one.why_not = failure{std::make_error_code(std::errc::operation_canceled), {}};
        if (one.owner->held) one.owner->held->unused = true;
        lease_.state().end_handoffs();  // it is not in the schedule, nor what the next one asked for
        give_up_unused(guard, *one.owner);
    }

    bool told_of_obstacle_ = false;
};

}  // namespace holdfast::detail
