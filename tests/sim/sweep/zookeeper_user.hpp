// SPDX-License-Identifier: MIT
#pragma once

#include "user.hpp"
#include "zookeeper_numbers.hpp"
#include "zookeeper_operator.hpp"
#include "zookeeper_process.hpp"
#include "zookeeper_scenario.hpp"
#include "zookeeper_servers.hpp"

#include <holdfast/core/access.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/core/options.hpp>
#include <holdfast/core/random.hpp>
#include <holdfast/core/semaphore_slot.hpp>
#include <holdfast/core/validity.hpp>
#include <holdfast/lock/lease_state.hpp>
#include <holdfast/lock/mutex_state.hpp>
#include <holdfast/lock/waiter.hpp>
#include <holdfast/sim/call.hpp>
#include <holdfast/sim/host.hpp>
#include <holdfast/sim/process.hpp>
#include <holdfast/zookeeper/error.hpp>
#include <holdfast/zookeeper/node_options.hpp>
#include <holdfast/zookeeper/session_lease.hpp>
#include <holdfast/zookeeper/session_store.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::test {

/// What all users of one schedule have in common.
struct zookeeper_plan {
    zookeeper_form form{};
    std::string path;
    boot_clock::time_point end{};
    bool calm = false;
    bool gives_up = false;                                ///< acquires are given up
    zookeeper::permits kept = zookeeper::permits::slots;  ///< how the permits are kept
};

/// A user of a lock on ZooKeeper: takes it, counts on it for as long as he was promised, has the lease confirmed as
/// `lease_state` says, and gives it back; again and again. Session and operations are the shipped ones.
///
/// If there are permits, he has several threads, which share the session. All of them begin anew with the process.
class zookeeper_user {
    /// An operation that a thread waits for, until its process dies.
    class pending {
    public:
        explicit pending(zookeeper_user& of) : of_{of}, call_{of.me_} { of_.pending_.push_back(&call_); }
        pending(pending const&) = delete;
        pending& operator=(pending const&) = delete;
        ~pending() { std::erase(of_.pending_, &call_); }

        [[nodiscard]] auto run(auto& one)
        {
            one.start(call_);
            return call_.ended_by();
        }

        [[nodiscard]] bool ended() const noexcept { return call_.ended(); }

        /// Effects: waits no longer. Requires: the operation has not ended, and is destroyed.
        void give_up() noexcept
        {
            given_up_ = true;
            call_.complete();
        }
        [[nodiscard]] bool given_up() const noexcept { return given_up_; }

    private:
        zookeeper_user& of_;
        sim::call call_;
        bool given_up_ = false;
    };

public:
    using time_point = boot_clock::time_point;
    using duration = boot_clock::duration;

    static constexpr std::uint32_t most_threads = 4;

    /// `permits`: how many there are, as this user says.
    zookeeper_user(sim::host& me, zookeeper_servers& servers, zookeeper_plan const& plan, record& r,
                   std::vector<renewal>& renewals, number_changes& numbers, std::size_t permits)
        : me_{me}, servers_{servers}, plan_{plan}, record_{r}, renewals_{renewals}, numbers_{numbers}, permits_{permits}
    {
        options_->ttl =
            zookeeper::session_lease::duration(std::chrono::floor<std::chrono::milliseconds>(servers.timeout()));
        holdfast::detail::random_sequence margins{me.world().seed() ^ (std::uint64_t{me.index() + 1} << 40U)};
        auto const most = static_cast<std::uint64_t>((options_->ttl / 3).count());
        if (margins.below(3) == 0)
            options_->stop_margin = std::chrono::milliseconds{static_cast<std::int64_t>(1 + margins.below(most))};
        if (plan_.form == zookeeper_form::queue && margins.below(4) == 0)
            options_->min_hold = std::chrono::milliseconds{
                static_cast<std::int64_t>(1 + margins.below(static_cast<std::uint64_t>(options_->ttl.count())))};
        be_born();
    }

    [[nodiscard]] zookeeper_loop& loop() const noexcept { return *loop_; }
    [[nodiscard]] sim::host& host() const noexcept { return me_; }

    /// What one of its threads does.
    sim::process live(std::uint32_t thread)
    {
        ++alive_;
        for (std::uint32_t round = 0; me_.world().now() < plan_.end; ++round) {
            bool const once = one_in(6);
            auto const deadline = one_in(3) ? me_.present() + me_.up_to(servers_.timeout() * 2) : plan_.end;
            auto const number = has_permits() ? round * most_threads + thread : round;
            auto const taken =
                me_.world().comes_true({sim::decision::kind::operation, index(), sim::decision::nobody, number});
            if (taken)
                co_await use(once, deadline, me_.up_to(one_in(4) ? 2 * servers_.timeout() : servers_.timeout() / 6));
            co_await me_.sleep_until(me_.present() + me_.up_to(servers_.timeout() / 8));
        }
        if (--alive_ == 0) end_use();
    }

    /// Takes the lock once, however long that takes, and gives it back. If there are permits, each thread takes one,
    /// and none is given back before all are taken.
    sim::process inherit(std::uint32_t thread)
    {
        ++alive_;
        while (thread < permits_ ? !heir_has_[thread] : !inherited_all()) {
            if (thread < permits_)
                co_await use(false, time_point::max(), {}, thread);
            else
                co_await me_.sleep_until(me_.present() + servers_.timeout() / 8);
        }
        if (--alive_ == 0 && inherited_all()) end_use();  // not all of its threads may have begun
    }

    /// Changes the number of permits, as a semaphore does it: its slots are of that number when it is done.
    sim::process resize(std::size_t to)
    {
        if (alive_ == 0 || std::exchange(resizing_, true)) co_return;
        auto const life = life_;
        note("changes the number of permits to", to);
        numbers_.decided = to;
        auto& mine =
            numbers_.all.emplace_back(number_changes::change{.client = me_.index(), .to = to, .begun = me_.present()});
        auto const session = store_->session().session();
        auto const in_use = store_->use_semaphore({plan_.path, to, 0});
        auto const changing = store_->resize(store_->make_slot_key({plan_.path, to, 0}), options_->ttl);
        pending doing{*this};
        auto const done_at = co_await doing.run(*changing);
        if (life != life_) co_return;
        resizing_ = false;
        mine.done = done_at;
        note(changing->outcome() ? "has changed the number of permits to" : "has not changed the number of permits to",
             to);
        if (!changing->outcome()) co_return;
        take_slots_of(to);
        if (session == store_->session().session()) mine.session = session;
    }

    /// What an operator does in its session.
    sim::process operate(deed& mine)
    {
        auto const life = life_;
        if (has_permits()) mine.slot %= slots_.size();  // of as many as this client knows
        auto const& key = has_permits() ? slots_[mine.slot] : alone_;
        bool const forces = mine.what == deed::kind::force;
        note(forces ? "takes the lock from its holder" : "asks the holder to release the lock", 0);
        mine.begun = me_.present();
        std::unique_ptr<pending_request> const asking =
            forces ? store_->force_release(key) : store_->request_release(key);
        pending doing{*this};
        auto const done_at = co_await doing.run(*asking);
        if (life != life_) co_return;
        mine.done = done_at;
        if (auto const told = asking->outcome()) mine.held = *told;
    }

private:
    struct granted_waiter final : detail::waiter {
        explicit granted_waiter(detail::mutex_state& of) : waiter{of, {}} {}
        void signal(std::uint32_t) noexcept override {}
    };

    static constexpr std::uint32_t no_heir = ~0U;

    [[nodiscard]] bool has_permits() const noexcept { return plan_.form == zookeeper_form::permits; }

    [[nodiscard]] bool inherited_all() const
    {
        return std::all_of(heir_has_.begin(), heir_has_.begin() + static_cast<std::ptrdiff_t>(permits_),
                           [](bool has) { return has; });
    }

    /// Effects: a new process begins, with a session of its own.
    void be_born()
    {
        in_use_ = nullptr;
        resizing_ = false;
        loop_ = std::make_shared<zookeeper_loop>(me_, servers_);
        auto const operation_timeout = std::chrono::ceil<std::chrono::milliseconds>(servers_.timeout() / 2);
        together_ = nullptr;
        store_ = std::make_unique<zookeeper::session_store>(open_zookeeper_session(loop_, servers_, operation_timeout));
        auto const queueing =
            plan_.form == zookeeper_form::plain ? zookeeper::queueing::none : zookeeper::queueing::sequential;
        if (has_permits()) return make_permits();
        alone_ = store_->make_key(plan_.path, {.queueing = queueing});
        if (plan_.form != zookeeper_form::readers || one_in(4)) return;  // a mutex of the same path
        alone_ = store_->make_shared_key(plan_.path, access::exclusive);
        together_ = store_->make_shared_key(plan_.path, access::shared);
    }

    /// Effects: makes the keys of as many permits as there are.
    void make_permits()
    {
        slots_.clear();
        for (std::size_t i = 0; i < permits_; ++i) {
            semaphore_slot const one{plan_.path, permits_, i};
            slots_.push_back(plan_.kept == zookeeper::permits::slots ? store_->make_slot_key(one)
                                                                     : store_->make_permit_key(one, plan_.kept));
        }
        if (plan_.kept == zookeeper::permits::slots) in_use_ = store_->use_semaphore({plan_.path, permits_, 0});
    }

    /// Effects: its semaphore is in use no more.
    void end_use()
    {
        for (auto& one : numbers_.all)
            if (one.client == me_.index()) one.over = std::min(one.over, me_.present());
        in_use_ = nullptr;
    }

    /// Effects: it has the slots of that number.
    void take_slots_of(std::size_t number)
    {
        end_use_of_others(number);
        permits_ = number;
        make_permits();
        if (alive_ == 0) end_use();
    }

    /// Effects: its slots of another number are in use no more.
    void end_use_of_others(std::size_t number)
    {
        for (auto& one : numbers_.all)
            if (one.client == me_.index() && one.to != number) one.over = std::min(one.over, me_.present());
    }

    /// Effects: takes over the number of permits that the servers know.
    void follow()
    {
        auto const known = servers_.state().content(plan_.path);
        if (known.empty()) return;
        permits_ = static_cast<std::size_t>(std::stoul(known));
        make_permits();
    }

    /// Effects: the process is killed, and another one begins in its place.
    void die()
    {
        loop_->end();
        ++life_;
        for (auto* const one : pending_) one->complete();
        be_born();
    }

    /// `heir`: the thread of one that inherits.
    sim::process use(bool once, time_point deadline, duration work, std::uint32_t heir = no_heir)
    {
        bool const inherits = heir != no_heir;
        auto const life = life_;
        auto const number = permits_;
        auto const slot = !has_permits() ? 0 : inherits ? heir : static_cast<std::size_t>(me_.below(slots_.size()));
        auto const key = has_permits() ? slots_[slot] : together_ && !inherits && one_in(2) ? together_ : alone_;
        note("wants the lock", 0);
        auto const asked = begin_call(call::kind::acquire, record_.claims.size() + unclaimed);
        auto const left = std::max(deadline, me_.present()) - me_.present();
        std::shared_ptr<pending_acquire> acquiring =
            store_->acquire(key, {.ttl = options_->ttl,
                                  .stop_margin = options_->stop_margin,
                                  .retry = {.first = std::chrono::microseconds{500}, .most = options_->ttl},
                                  .once = once,
                                  .deadline = deadline == time_point::max() ? deadline : me_.now() + left});
        if (has_permits() && !inherits && one_in(8))
            me_.at(me_.present() + me_.up_to(servers_.timeout() / 2), [weak = std::weak_ptr{acquiring}] {
                if (auto const one = weak.lock()) one->cancel();
            });
        pending taking{*this};
        if (plan_.gives_up && !inherits) may_give_up(acquiring, taking);
        auto const done_at = co_await taking.run(*acquiring);
        if (life != life_) co_return;
        if (taking.given_up()) {
            note("gives up", 0);
            co_return;
        }
        auto const got = acquiring->outcome();
        if (!got) {
            note("refused: code", static_cast<std::uint64_t>(got.code().value()));
            ++record_.verdict.refused;
            // Whether it was another's is known where it was asked once, and that was answered.
            if (once && got.code() == errc::timed_out) end_call(asked, call::answer::refused, done_at);
            bool const changed = numbers_.decided != 0 && got.code() == zookeeper::errc::other_number && !resizing_;
            if (!inherits && changed && me_.world().now() < plan_.end) {
                if (extra_.below(2) == 0)
                    co_await resize(numbers_.decided);
                else
                    take_slots_of(numbers_.decided);
            }
            if (!inherits) co_return;
            if (got.code() != zookeeper::errc::other_number) record_.breach("K6", "the heir was refused");
            if (plan_.kept == zookeeper::permits::kazoo) follow();
            co_await me_.sleep_until(me_.present() + servers_.timeout() / 8);
            co_return;
        }
        auto const mine = claim(*got, done_at, key, slot, number);
        record_.claims[mine].asked = record_.calls[asked].called;
        if (inherits) heir_has_[heir] = true;
        if (has_permits() && !once)
            record_.waits.push_back({.client = me_.index(), .asked = record_.calls[asked].called, .over = done_at});
        record_.calls[asked].claim = mine;
        end_call(asked, call::answer::done, done_at, me_.when(got->valid_until));
        co_await hold(*got, mine, work, key, inherits);
    }

    /// Effects: one in eight acquires is given up after a while: it is cancelled; or destroyed, which the interface of
    /// a store does not allow, but its operations withstand.
    void may_give_up(std::shared_ptr<pending_acquire>& acquiring, pending& waiting)
    {
        if (extra_.below(8) != 0) return;
        bool const cancels = extra_.below(2) == 0;
        auto const most = static_cast<std::uint64_t>((servers_.timeout() / (extra_.below(2) == 0 ? 2 : 20)).count());
        auto const at = me_.present() + duration{static_cast<duration::rep>(extra_.below(most))};
        me_.at(at, [weak = std::weak_ptr{acquiring}, &acquiring, &waiting, cancels] {
            auto const one = weak.lock();
            if (!one || waiting.ended()) return;  // both are gone, or it is done
            if (cancels) return one->cancel();
            acquiring.reset();
            waiting.give_up();
        });
    }

    /// Effects: what `got` promises becomes part of the record. Returns: the number of that claim.
    std::size_t claim(grant const& got, time_point done_at, shared_key const& key, std::size_t slot,
                      std::size_t number = 1)
    {
        note("ACQUIRED, fence", got.fence);
        ++record_.verdict.acquired;
        record_.claims.push_back({.client = me_.index(),
                                  .granted = done_at,
                                  .valid_until = me_.when(got.valid_until),
                                  .first_fence = got.fence,
                                  .last_fence = got.fence + got.fences - 1,
                                  .shared = key->mode() == access::shared,
                                  .permits = number,
                                  .slot = slot,
                                  .node = node_of(got)});
        return record_.claims.size() - 1;
    }

    /// Returns: the transaction that made the node of a lease; if that was lost before its user was told of it, as far
    /// as its first token shows it, else 0.
    [[nodiscard]] std::int64_t node_of(grant const& got) const
    {
        std::scoped_lock guard{store_->session().mutex()};
        if (auto const* const node = store_->session().held().find(got.token)) return node->what.czxid;
        auto const shown = static_cast<std::int64_t>(got.fence / zookeeper::first_token_of(1));
        return zookeeper::first_token_of(shown) == got.fence ? shown : 0;
    }

    sim::process hold(grant got, std::size_t mine, duration work, shared_key key, bool inherits)
    {
        auto const life = life_;
        auto leave_at = me_.present() + work;
        detail::mutex_state owner;
        owner.options = options_;
        granted_waiter in_line{owner};
        detail::lease_state lease;
        lease.begin(got, in_line);
        lease.give(in_line, lease.deadline_for(got.valid_until), nullptr);
        auto held = lease.holder();
        auto const kept_until =
            options_->min_hold.count() != 0 ? me_.when(held->since() + options_->min_hold) : time_point{};
        bool ends_early = false;  // a lease that is kept
        auto const must_stay = [&] { return inherits && !inherited_all(); };
        bool lost = false;
        auto deadline = held->deadline();
        while (!lost) {
            auto const looks_at = must_stay() ? me_.present() + servers_.timeout() / 16 : leave_at;
            co_await me_.sleep_until(std::min(looks_at, me_.when(lease.next_look())));
            if (life != life_) co_return;
            if (!held->still_held()) break;
            deadline = held->deadline();
            believe(mine, deadline + announcement_margin(options_->ttl) + options_->stop_margin);
            if (me_.present() >= leave_at && !must_stay()) {
                auto const release_at = lease.earliest_release();
                if (lease.kept() || release_at <= me_.now()) break;
                note("keeps the lock, fence", got.fence);
                held->end();
                ends_early = lease.keep(std::make_shared<detail::hold_state>(), options_, deadline, release_at);
                held = lease.holder();
                leave_at = me_.when(release_at);
            }
            if (!std::exchange(ends_early, false) && !lease.due(me_.now())) continue;
            lease.ask(lease.ttl());
            auto const asked = begin_call(call::kind::renew, mine);
            auto const extending = store_->extend(key, got.token, lease.ttl());
            pending confirming{*this};
            auto const done_at = co_await confirming.run(*extending);
            if (life != life_) co_return;
            auto const until = extending->outcome();
            lost = lease.settle(until).has_value();
            if (until) {
                end_call(asked, call::answer::done, done_at, me_.when(*until));
                renewals_.push_back({.claim = mine,
                                     .called = record_.calls[asked].called,
                                     .returned = done_at,
                                     .until = me_.when(*until),
                                     .asked = extending->release_requested()});
                if (lost) continue;
                note("renewed", 0);
                ++record_.verdict.renewed;
                believe(mine, *until);
            } else if (until.code() == errc::lease_lost) {
                end_call(asked, call::answer::refused, done_at);
            }
        }
        if (lost || !held->still_held()) {
            note("LOST, fence", got.fence);
            ++record_.verdict.lost;
            if (!lost && options_->stop_margin.count() != 0) {
                auto const stops_by = record_.claims[mine].stops_by = me_.when(deadline + options_->stop_margin);
                co_await me_.sleep_until(stops_by);
                if (life != life_) co_return;
            }
        }
        std::optional<grant> other;
        auto then = mine;
        auto const other_key = key == alone_ ? together_ : alone_;
        if (together_ && !lost && held->still_held() && one_in(3)) {
            auto const converting =
                store_->acquire(other_key, {.ttl = options_->ttl, .once = true, .beside = got.token});
            pending asking{*this};
            auto const done_at = co_await asking.run(*converting);
            if (life != life_) co_return;
            if (auto const more = converting->outcome()) {
                note("goes to the other mode, of fence", got.fence);
                // The old lease was still there when the new one was granted: from then on it does not count.
                record_.claims[mine].ended = std::min(record_.claims[mine].ended, done_at);
                other = *more;
                then = claim(*other, done_at, other_key, 0);
            }
        }
        record_.claims[mine].ended = std::min(record_.claims[mine].ended, me_.present());
        if (!plan_.calm && one_in(me_.world().now() >= plan_.end ? 3 : 30)) {
            note("DIES, fence", got.fence);
            if (!other) record_.claims[mine].ended = time_point::max();
            die();
            co_return;
        }
        if (!lost && held->still_held()) record_.claims[mine].kept_until = kept_until;
        note("releases, fence", got.fence);
        auto const asked = begin_call(call::kind::release, mine);
        auto const giving_back = store_->release(key);
        giving_back->bind(got.token);
        pending releasing{*this};
        auto const done_at = co_await releasing.run(*giving_back);
        if (life != life_) co_return;
        auto const said = giving_back->outcome().code;
        if (!said) end_call(asked, call::answer::done, done_at);
        if (said == errc::not_owner) end_call(asked, call::answer::refused, done_at);
        if (other) co_await hold(*other, then, me_.up_to(servers_.timeout() / 6), other_key, false);
    }

    /// Effects: the claim is good until its holder's clock shows `t`.
    void believe(std::size_t mine, time_point t)
    {
        auto& until = record_.claims[mine].valid_until;
        until = std::max(until, me_.when(t));
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

    static constexpr std::size_t unclaimed = 1U << 30U;

    [[nodiscard]] std::uint8_t index() const noexcept { return static_cast<std::uint8_t>(me_.index()); }
    [[nodiscard]] bool one_in(unsigned n) { return me_.below(n) == 0; }
    void note(std::string_view what, std::uint64_t value)
    {
        me_.world().note(what, me_.index(), sim::event::nobody, value);
    }

    sim::host& me_;
    zookeeper_servers& servers_;
    zookeeper_plan const& plan_;
    record& record_;
    std::vector<renewal>& renewals_;
    number_changes& numbers_;
    std::shared_ptr<lock_options> options_ = std::make_shared<lock_options>();
    std::shared_ptr<zookeeper_loop> loop_;
    std::unique_ptr<zookeeper::session_store> store_;
    shared_key alone_;
    shared_key together_;  // none if there is no such mode
    holdfast::detail::random_sequence extra_{~me_.world().seed() ^ (std::uint64_t{me_.index() + 1} << 32U)};
    std::size_t permits_;  // as this user says
    std::vector<shared_key> slots_;
    std::shared_ptr<void const> in_use_;  // the semaphore of this process
    bool resizing_ = false;               // its number of permits is being changed
    std::uint32_t alive_ = 0;             // threads
    std::uint64_t life_ = 0;              // how many processes there were before
    std::vector<sim::call*> pending_;
    std::array<bool, most_threads> heir_has_{};
};

}  // namespace holdfast::test
