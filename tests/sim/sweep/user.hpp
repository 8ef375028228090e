// SPDX-License-Identifier: MIT
#pragma once

#include "history.hpp"
#include "schedule.hpp"
#include "verdict.hpp"

#include <holdfast/core/lock_store.hpp>
#include <holdfast/core/options.hpp>
#include <holdfast/core/validity.hpp>
#include <holdfast/lock/lease_state.hpp>
#include <holdfast/lock/mutex_state.hpp>
#include <holdfast/lock/waiter.hpp>
#include <holdfast/redis/acquire_operation.hpp>
#include <holdfast/redis/quorum_operation.hpp>
#include <holdfast/sim/call.hpp>
#include <holdfast/sim/process.hpp>
#include <holdfast/sim/transport.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::test {

/// What is known of one lock in one schedule.
struct record {
    history claims;
    test::calls calls;
    std::vector<wait> waits;  ///< of a lock with two modes
    test::verdict verdict;
    std::vector<boot_clock::time_point> votes_gone;  ///< when a server lost the lock's key, though it voted on
    std::vector<boot_clock::time_point> deleted;     ///< the same, of all servers

    void breach(std::string_view which, std::string what) { verdict.breaches.push_back({which, std::move(what)}); }
};

/// The keys of one lock: how it is held alone, and, of a read-write lock, how together with others.
struct keys_of_modes {
    redis::shared_keys alone;
    redis::shared_keys together{};

    /// Returns: those of one lock of that name.
    [[nodiscard]] static keys_of_modes of_mutex(std::string const& name)
    {
        return {std::make_shared<redis::lock_keys const>(name)};
    }
    [[nodiscard]] static keys_of_modes of_shared_mutex(std::string const& name)
    {
        return {std::make_shared<redis::lock_keys const>(name, "", access::exclusive),
                std::make_shared<redis::lock_keys const>(name, "", access::shared)};
    }
};

/// A user of one lock: takes it, works for a while, has the lease renewed as `lease_state` says, and gives it back;
/// again and again. If it has two modes, it takes either, and now and then goes from one to the other. What it was
/// promised becomes part of the record.
class user {
public:
    user(sim::transport& way, keys_of_modes keys, schedule const& plan, client_plan const& mine,
         boot_clock::time_point end, record& r)
        : way_{way},
          me_{way.client()},
          keys_{std::move(keys)},
          plan_{plan},
          mine_{mine},
          end_{end},
          record_{r},
          options_{std::make_shared<lock_options const>(lock_options{
              .ttl = mine.ttl, .renew = mine.renews, .stop_margin = mine.stop_margin, .min_hold = mine.min_hold})}
    {
    }

    sim::process live()
    {
        while (me_.world().now() < end_) {
            auto const wish = next_wish();
            auto const& key = keys_.together && one_in(2) ? keys_.together : keys_.alone;
            auto const patience = one_in(20) ? me_.present() + up_to(plan_.ttl) : end_ + plan_.ttl;
            if (!me_.world().comes_true({sim::decision::kind::operation, me(), sim::decision::nobody, operations_++})) {
                co_await me_.sleep_until(me_.present() + plan_.ttl / 8);
                continue;
            }
            auto const asked = begin_call(call::kind::acquire, record_.claims.size() + unclaimed);
            redis::acquire_operation acquire{way_, key, wish};
            note("wants the lock", static_cast<std::uint64_t>(options_->ttl.count()));
            sim::call asking{me_};
            acquire.start(asking);
            auto const done_at = co_await asking.ended_by(patience);
            if (keys_.together && !wish.once)
                record_.waits.push_back({.client = me_.index(),
                                         .shared = key == keys_.together,
                                         .asked = record_.calls[asked].called,
                                         .over = std::min(done_at, me_.when(wish.deadline))});
            if (!asking.ended()) {
                note("gives up", 0);
                if (one_in(2)) acquire.cancel();
                continue;
            }
            if (is_late(wish, done_at)) record_.breach("deadline", "a deadline was not kept");
            if (auto const got = acquire.outcome()) {
                claim(*got, wish, record_.calls[asked].called, done_at, key);
                record_.calls[asked].claim = record_.claims.size() - 1;
                end_call(asked, call::answer::done, done_at, me_.when(got->valid_until));
                co_await hold(*got, record_.claims.size() - 1, key);
            } else {
                note(got.code() == errc::timed_out ? "refused: timed out" : "refused: code",
                     static_cast<std::uint64_t>(got.code().value()));
                ++record_.verdict.refused;
                if (got.code() == errc::misconfigured)
                    record_.breach("refused", "an acquire failed for good: " + got.code().message());
                bool const held = !may_be_late(wish, done_at - record_.calls[asked].called);
                if (got.code() == errc::timed_out && held) end_call(asked, call::answer::refused, done_at);
                co_await me_.sleep_until(me_.present() + up_to(plan_.ttl / 8));
            }
        }
    }

    /// Takes the lock once, however long that takes, and gives it back.
    sim::process inherit()
    {
        redis::acquire_operation acquire{
            way_,
            keys_.alone,
            {.ttl = plan_.ttl, .retry = {.first = std::chrono::microseconds{500}, .most = plan_.ttl}}};
        auto const asked = me_.present();
        sim::call asking{me_};
        acquire.start(asking);
        auto const done_at = co_await asking.ended_by();
        auto const got = acquire.outcome();
        if (!got) {
            record_.breach("K6", "the heir was told: " + got.code().message());
            co_return;
        }
        note("INHERITS, fence", got->fence);
        record_.claims.push_back({.client = me_.index(),
                                  .granted = done_at,
                                  .valid_until = me_.when(got->valid_until),
                                  .ended = me_.present(),
                                  .first_fence = got->fence,
                                  .last_fence = got->fence,
                                  .asked = asked});
        redis::release_operation release{way_, keys_.alone};
        release.bind(got->token);
        sim::call releasing{me_};
        release.start(releasing);
        co_await releasing.ended_by();
    }

private:
    struct granted_waiter final : detail::waiter {
        explicit granted_waiter(detail::mutex_state& of) : waiter{of, {}} {}
        void signal(std::uint32_t) noexcept override {}
    };

    using duration = boot_clock::duration;
    using time_point = boot_clock::time_point;
    static constexpr std::size_t unclaimed = 1U << 30U;

    sim::process hold(grant got, std::size_t mine, redis::shared_keys key)
    {
        auto leave_at = me_.present() + up_to(one_in(4) ? 3 * plan_.ttl : plan_.ttl / 6);
        detail::mutex_state owner;
        owner.options = options_;
        granted_waiter one{owner};
        detail::lease_state lease;
        lease.begin(got, one);
        lease.give(one, lease.deadline_for(got.valid_until), nullptr);
        auto held = lease.holder();
        auto const kept_until = mine_.min_hold.count() != 0 ? me_.when(held->since() + mine_.min_hold) : time_point{};
        bool ends_early = false;  // a lease that is kept
        auto deadline = held->deadline();
        auto kept_since = time_point::min();  // its last extension
        bool refused = false;
        for (;;) {
            co_await me_.sleep_until(std::min(leave_at, me_.when(lease.next_look())));
            if (!held->still_held()) break;
            believe(mine, deadline + margin(lease.ttl()));
            if (me_.present() >= leave_at) {
                auto const release_at = lease.earliest_release();
                if (lease.kept() || release_at <= me_.now()) break;
                note("keeps the lock, fence", got.fence);
                held->end();
                ends_early = lease.keep(std::make_shared<detail::hold_state>(), options_, deadline, release_at);
                held = lease.holder();
                leave_at = me_.when(release_at);
            }
            if (!ends_early && !lease.due(me_.now())) continue;
            bool const longer = !lease.kept() && mine_.extends && one_in(3);
            auto const length =
                lease.kept() ? lease.wanted_ttl()
                : longer ? lease.ttl() + std::chrono::floor<std::chrono::milliseconds>(up_to(plan_.ttl - lease.ttl()))
                         : lease.ttl();
            lease.ask(length);
            auto const asked = begin_call(call::kind::renew, mine);
            redis::extend_operation extend{way_, key, got.token, length};
            sim::call extending{me_};
            extend.start(extending);
            auto const answered = co_await extending.ended_by();
            auto const until = extend.outcome();
            if (until) end_call(asked, call::answer::done, answered, me_.when(*until));
            if (until.code() == errc::lease_lost) end_call(asked, call::answer::refused, answered);
            refused = lease.settle(until).has_value();
            if (until && !refused) {
                note("renewed", 0);
                ++record_.verdict.renewed;
                deadline = held->deadline();
                believe(mine, deadline + margin(lease.ttl()));
                if (!lease.kept()) continue;
                kept_since = answered;
                if (std::exchange(ends_early, false) && deadline + margin(length) + drift(length) < lease.release_at())
                    record_.breach("min_hold",
                                   "client " + std::to_string(me_.index()) + " keeps the lock for less than it has to");
                if (!plan_.mortal || !one_in(8)) continue;
                note("DIES while it keeps the lock, fence", got.fence);
                record_.claims[mine].kept_until = kept_until - drift(lease.ttl());  // by the servers' clocks
                co_return;
            }
            if (refused) {
                record_.claims[mine].ended = std::min(record_.claims[mine].ended, answered);
                break;
            }
            note("not renewed: code", static_cast<std::uint64_t>(until.code().value()));
        }
        bool const lost = refused || !held->still_held();
        // One that is kept for no longer than it is valid is not renewed.
        if (plan_.undisturbed && mine_.renews && !lease.kept()) look_when(mine);
        if (lost) {
            note("LOST, fence", got.fence);
            ++record_.verdict.lost;
            if (!refused && mine_.renews) look_why(mine, deadline, kept_since);
            if (!refused && mine_.stop_margin.count() != 0) {
                record_.claims[mine].stops_by = me_.when(deadline + mine_.stop_margin);
                co_await me_.sleep_until(record_.claims[mine].stops_by);
            }
        }
        grant other;
        std::size_t then = unclaimed;
        auto const& other_key = key == keys_.alone ? keys_.together : keys_.alone;
        if (!lost && other_key && one_in(3)) {
            auto const wish = beside(got.token);
            auto const asked_at = me_.present();
            redis::acquire_operation acquire{way_, other_key, wish};
            sim::call asking{me_};
            acquire.start(asking);
            auto const done_at = co_await asking.ended_by();
            if (auto const more = acquire.outcome()) {
                note("goes to the other mode, of fence", got.fence);
                // The old lease was still there when the new one was granted: from then on it does not count.
                record_.claims[mine].ended = std::min(record_.claims[mine].ended, done_at);
                other = *more;
                then = record_.claims.size();
                claim(other, wish, asked_at, done_at, other_key);
            }
        }
        if (plan_.mortal && one_in(me_.world().now() >= end_ ? 3 : 30)) {
            note("DIES, fence", got.fence);
            co_return;
        }
        record_.claims[mine].ended = std::min(record_.claims[mine].ended, me_.present());
        record_.claims[mine].release_sent = true;
        if (!lost) record_.claims[mine].kept_until = kept_until;
        note("releases, fence", got.fence);
        auto const asked = begin_call(call::kind::release, mine);
        redis::release_operation release{way_, key};
        release.bind(got.token);
        sim::call releasing{me_};
        release.start(releasing);
        if (then != unclaimed) {
            co_await hold(other, then, other_key);
            co_await releasing.ended_by();
            co_return;
        }
        if (mine_.deferred_release) co_return;
        auto const answered = co_await releasing.ended_by();
        auto const said = release.outcome().code;
        if (!said) end_call(asked, call::answer::done, answered);
        if (said == errc::not_owner) end_call(asked, call::answer::refused, answered);
        if (plan_.calm && !lost && said)
            record_.breach("release", "a release failed without a cause: " + said.message());
    }

    /// Effects: what `got` promises becomes part of the record.
    void claim(grant const& got, acquire_request const& wish, time_point asked, time_point done_at,
               redis::shared_keys const& key)
    {
        note("ACQUIRED, fence", got.fence);
        ++record_.verdict.acquired;
        record_.claims.push_back({.client = me_.index(),
                                  .granted = done_at,
                                  .valid_until = me_.when(got.valid_until),
                                  .first_fence = got.fence,
                                  .last_fence = got.fence + wish.fences - 1,
                                  .shared = key == keys_.together,
                                  .asked = asked,
                                  .waited = !wish.once,
                                  .beside = wish.beside.has_value()});
    }

    /// Returns: a request for the other mode, beside a lease.
    [[nodiscard]] acquire_request beside(owner_token const& held) const
    {
        return {.ttl = options_->ttl, .stop_margin = options_->stop_margin, .once = true, .beside = held};
    }

    /// Returns: how long before the end of its validity the loss of a lease of `ttl` is announced.
    [[nodiscard]] duration margin(std::chrono::milliseconds ttl) const
    {
        return announcement_margin(ttl) + mine_.stop_margin;
    }

    /// Effects: the claim is good until its holder's clock shows `t`: that may be another time than it was, where
    /// something was done to the clock.
    void believe(std::size_t mine, time_point t)
    {
        auto& until = record_.claims[mine].valid_until;
        until = std::max(until, me_.when(t));
    }

    /// A lease that is renewed is not let go of while there is time to ask again, and every server answers. One that is
    /// so short that it ends before its first renewal may be, and one that is kept, which asks for what is left only,
    /// before its next.
    void look_why(std::size_t mine, time_point deadline, time_point kept_since)
    {
        auto const well_since =
            std::max({plan_.well_since, me_.awake_since(), record_.claims[mine].granted, kept_since});
        if (me_.clock().when(deadline) - well_since > 4 * plan_.node_timeout + std::chrono::milliseconds{10})
            record_.breach("renewal", "client " + std::to_string(me_.index()) +
                                          " let its lease end although it could have been renewed");
    }

    /// Where every server answers, a holder whose lock was deleted knows of it with its next renewal. If that happened
    /// during a renewal, the holder may have the lock once more: some masters had renewed it before, which makes a
    /// majority with those that vote anew; and at the next renewal, which is then granted, the others vote anew.
    void look_when(std::size_t mine)
    {
        auto const known = std::min(record_.claims[mine].ended, me_.present());
        auto const longest = duration{plan_.ttl} / 3 + 2 * plan_.node_timeout;
        for (auto const at : record_.deleted)
            if (at >= record_.claims[mine].granted && known > at + longest && !regained(mine, at))
                record_.breach("deleted", "client " + std::to_string(me_.index()) +
                                              " held the lock on for long after its key had been deleted");
    }

    /// Returns: whether several masters were asked to renew it at `t`, in the time of the world, and renewed it later.
    [[nodiscard]] bool regained(std::size_t mine, time_point t) const
    {
        bool renewing = false;
        bool renewed = false;
        for (auto const& c : record_.calls) {
            if (c.what != call::kind::renew || c.claim != mine) continue;
            renewing = renewing || (c.called <= t && t <= c.returned);
            renewed = renewed || (c.called > t && c.told == call::answer::done);
        }
        return plan_.nodes.size() > 1 && renewing && renewed;
    }

    acquire_request next_wish()
    {
        auto const now = me_.now();
        bool const once = one_in(8);
        auto const deadline =
            once ? time_point::max()
                 : now + (std::max(me_.present(),
                                   one_in(2) ? end_ : std::min(end_, me_.present() + up_to(3 * plan_.ttl))) -
                          me_.present());
        auto const fences = one_in(2) ? mine_.fences : 1U;
        bool const for_ever = one_in(2);
        return {.ttl = options_->ttl,
                .stop_margin = options_->stop_margin,
                .fences = fences,
                .retry = {.first = std::chrono::microseconds{500}, .most = options_->ttl},
                .once = once,
                .deadline = deadline,
                .unavailable_at = for_ever ? time_point::max() : now + 2 * plan_.ttl,
                .unavailable_after = for_ever ? boot_clock::duration::max() : 2 * plan_.ttl};
    }

    /// Returns: whether an acquire took longer than its deadline and one node timeout, and a message more. While its
    /// client stood still, no time counts.
    [[nodiscard]] bool is_late(acquire_request const& wish, time_point done_at) const
    {
        if (wish.once) return false;
        auto const over = std::max(me_.when(wish.deadline), me_.awake_since());
        auto const timeout = plan_.node_timeout * 101 / 100;  // its clock may go slow
        return done_at > over + timeout + plan_.wrong.longest_delay;
    }

    /// Returns: whether an acquire that `took` so long may have been granted the lock when its lease was of no use any
    /// more: a single attempt, or one of a lease that is shorter than an attempt may take. Then it does not show that
    /// another client had the lock.
    [[nodiscard]] bool may_be_late(acquire_request const& wish, duration took) const
    {
        auto const clock = boot_clock::duration{wish.ttl} / 100;
        auto const of_use = valid_until({}, wish.ttl) - margin(wish.ttl) - clock - time_point{};
        return took >= of_use && (wish.once || of_use < 2 * plan_.node_timeout);
    }

    std::size_t begin_call(call::kind what, std::size_t claim)
    {
        record_.calls.push_back({.what = what, .client = me_.index(), .claim = claim, .called = me_.present()});
        return record_.calls.size() - 1;
    }

    void end_call(std::size_t which, call::answer told, time_point returned, time_point until = {})
    {
        auto& one = record_.calls[which];
        one.told = told;
        one.returned = returned;
        one.until = until;
    }

    [[nodiscard]] std::uint8_t me() const noexcept { return static_cast<std::uint8_t>(me_.index()); }
    [[nodiscard]] duration up_to(duration most) { return me_.up_to(most); }
    [[nodiscard]] bool one_in(unsigned n) { return me_.below(n) == 0; }
    void note(std::string_view what, std::uint64_t value)
    {
        me_.world().note(what, me_.index(), sim::event::nobody, value);
    }

    sim::transport& way_;
    sim::host& me_;
    keys_of_modes keys_;
    schedule const& plan_;
    client_plan mine_;
    time_point end_;
    record& record_;
    std::shared_ptr<lock_options const> options_;
    std::uint32_t operations_ = 0;
};

}  // namespace holdfast::test
