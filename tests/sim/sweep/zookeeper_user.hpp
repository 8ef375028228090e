// SPDX-License-Identifier: MIT
#pragma once

#include "user.hpp"
#include "zookeeper_scenario.hpp"
#include "zookeeper_session.hpp"

#include <holdfast/core/backend.hpp>
#include <holdfast/core/options.hpp>
#include <holdfast/core/token.hpp>
#include <holdfast/core/validity.hpp>
#include <holdfast/lock/tenure.hpp>
#include <holdfast/sim/host.hpp>
#include <holdfast/sim/process.hpp>
#include <holdfast/zookeeper/acquirer.hpp>
#include <holdfast/zookeeper/erase_machine.hpp>
#include <holdfast/zookeeper/plain_machine.hpp>
#include <holdfast/zookeeper/queue_machine.hpp>

#include <algorithm>
#include <chrono>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace holdfast::test {

/// What all users of one schedule have in common.
struct zookeeper_plan {
    zookeeper_form form{};
    std::string path;
    boot_clock::time_point end{};
    bool calm = false;
};

/// A user of a lock on ZooKeeper: takes it with the shipped machine, counts on it for as long as the shipped arithmetic says, has the lease
/// confirmed as `tenure` says, and gives it back with the shipped machine; again and again.
class zookeeper_user {
public:
    using time_point = boot_clock::time_point;
    using duration = boot_clock::duration;

    zookeeper_user(sim::host& me, zookeeper_servers& servers, zookeeper_plan const& plan, record& r)
        : me_{me}, servers_{servers}, plan_{plan}, record_{r}, session_{me, servers}
    {
        options_->ttl = zookeeper::session_lease::duration(std::chrono::floor<std::chrono::milliseconds>(servers.timeout()));
    }

    [[nodiscard]] zookeeper_session& session() noexcept { return session_; }
    [[nodiscard]] sim::host& host() const noexcept { return me_; }

    sim::process live()
    {
        while (me_.world().now() < plan_.end) {
            bool const once = one_in(6);
            auto const deadline = once || one_in(3) ? me_.present() + me_.up_to(servers_.timeout() * 2) : plan_.end;
            auto const taken = me_.world().comes_true({sim::decision::kind::operation, index(), sim::decision::nobody, operations_++});
            if (taken) co_await use(once, deadline, me_.up_to(one_in(4) ? 2 * servers_.timeout() : servers_.timeout() / 6));
            co_await me_.sleep_until(me_.present() + me_.up_to(servers_.timeout() / 8));
        }
    }

    /// Takes the lock once, however long that takes, and gives it back.
    sim::process inherit() { co_await use(false, time_point::max(), {}); }

    /// Returns: whether nothing of it is left to be removed.
    [[nodiscard]] bool clean() const { return erasers_.empty(); }

private:
    /// A machine that runs over the session.
    template <class Machine>
    class running final : public session_listener {
    public:
        template <class... Args>
        explicit running(zookeeper_user& of, Args&&... args) : machine{std::forward<Args>(args)...}, of_{of}
        {
        }
        running(running const&) = delete;
        running& operator=(running const&) = delete;
        ~running() override { of_.session_.detach(*this); }

        void start() { of_.session_.attach(*this), act(); }
        void on_answer(unsigned tag, zookeeper::reply const& r) override
        {
            machine.answered(tag, r);
            if (r.what == zookeeper::answer::lost && of_.session_.connected()) machine.connected(of_.session_.session());
            act();
        }
        void on_notice(unsigned tag) override
        {
            if constexpr (requires { machine.noticed(tag); }) machine.noticed(tag);
            act();
        }
        void on_connected(std::int64_t session) override { machine.connected(session), act(); }
        void on_expired() override { machine.expired(), act(); }

        void act()
        {
            for (auto const& one : machine.take_actions()) of_.session_.send(this, one.tag, one.what);
            of_.wake();
        }

        Machine machine;

    private:
        zookeeper_user& of_;
    };

    /// Asks whether a node is still there, and a quorum whether the session is.
    class confirmation final : public session_listener {
    public:
        confirmation(zookeeper_user& of, std::string node) : of_{of}, node_{std::move(node)} { of_.session_.attach(*this); }
        confirmation(confirmation const&) = delete;
        confirmation& operator=(confirmation const&) = delete;
        ~confirmation() override { of_.session_.detach(*this); }

        void on_answer(unsigned, zookeeper::reply const& r) override
        {
            asked_ = false;
            if (r.what != zookeeper::answer::lost) said_ = r;
            of_.wake();
        }
        void on_notice(unsigned) override {}
        void on_connected(std::int64_t) override
        {
            if (said_ || over_ || std::exchange(asked_, true)) return;
            of_.session_.show_life(true);
            of_.session_.send(this, 0, {zookeeper::request::kind::data, node_});
        }
        void on_expired() override { over_ = true, of_.wake(); }

        [[nodiscard]] std::optional<zookeeper::reply> const& said() const noexcept { return said_; }
        [[nodiscard]] bool over() const noexcept { return over_; }

    private:
        zookeeper_user& of_;
        std::string node_;
        bool asked_ = false;
        bool over_ = false;
        std::optional<zookeeper::reply> said_;
    };

    /// What a coroutine awaits to go on when something has happened in the session, or at a time of the world.
    struct waiting {
        zookeeper_user& of;
        time_point until;
        [[nodiscard]] static bool await_ready() noexcept { return false; }
        void await_suspend(std::coroutine_handle<> h)
        {
            of.waiter_ = h;
            auto const mine = ++of.wait_;
            if (until == time_point::max()) return;
            of.me_.at(until, [&u = of, mine] { u.resume(mine); });
        }
        static void await_resume() noexcept {}
    };
    [[nodiscard]] waiting news(time_point t) { return {*this, t}; }

    using queue = running<zookeeper::queue_machine>;
    using plain = running<zookeeper::plain_machine>;
    using removal = running<zookeeper::erase_machine>;

    sim::process use(bool once, time_point deadline, duration work)
    {
        if (plan_.form == zookeeper_form::queue)
            co_await take<queue>(once, deadline, work,
                                 [this, once] { return std::make_unique<queue>(*this, wish(once), zookeeper::naming::curator); });
        else
            co_await take<plain>(once, deadline, work, [this, once] { return std::make_unique<plain>(*this, wish(once)); });
    }

    [[nodiscard]] zookeeper::acquire_plan wish(bool once)
    {
        return {.lock = plan_.path, .content = "c" + std::to_string(me_.index()), .once = once, .look_first = one_in(2), .tokens = [this] {
                    return owner_token::from_bits(me_.random(), me_.random());
                }};
    }

    template <class Running, class Make>
    sim::process take(bool once, time_point deadline, duration work, Make make)
    {
        note("wants the lock", 0);
        auto const asked = begin_call(call::kind::acquire, record_.claims.size() + unclaimed);
        auto acquiring = make();
        acquiring->start();
        auto const ttl = options_->ttl;
        bool told = false;  // the machine was told that the lock is another's
        for (;;) {
            auto& machine = acquiring->machine;
            auto look_again = deadline;
            told = machine.now() == zookeeper::acquirer::phase::failed;
            if (machine.now() == zookeeper::acquirer::phase::granted) {
                if (machine.session() != session_.session()) {
                    acquiring = make();
                    acquiring->start();
                    continue;
                }
                auto const until = session_.lease().until();
                if (until - me_.now() >= duration{ttl} / 2) break;
                session_.show_life(true);
                look_again = std::min(look_again, me_.present() + servers_.timeout() / 32);
            } else if (machine.now() == zookeeper::acquirer::phase::failed || me_.present() >= deadline) {
                machine.give_up(make_error_code(errc::timed_out));
                break;
            } else if (machine.pausing()) {
                co_await me_.sleep_until(me_.present() + me_.up_to(std::chrono::microseconds{500}));
                machine.pause_is_over();
                acquiring->act();
                continue;
            }
            if (me_.present() >= deadline) {
                machine.give_up(make_error_code(errc::timed_out));
                break;
            }
            co_await news(look_again);
        }
        auto& machine = acquiring->machine;
        auto const until = session_.lease().until();
        bool const got = machine.now() == zookeeper::acquirer::phase::granted && until - me_.now() >= duration{ttl} / 2;
        if (!got) {
            note("refused", 0);
            ++record_.verdict.refused;
            // Whether it was another's is known where it was asked once, and that was answered.
            if (once && told && machine.reached()) end_call(asked, call::answer::refused, me_.present());
            if (machine.left_something()) remove(machine.what_is_left());
            co_return;
        }
        auto const fence = static_cast<std::uint64_t>(machine.czxid());
        note("ACQUIRED, fence", fence);
        ++record_.verdict.acquired;
        record_.claims.push_back(
            {.client = me_.index(), .granted = me_.present(), .valid_until = me_.when(until), .first_fence = fence, .last_fence = fence});
        auto const mine = record_.claims.size() - 1;
        record_.calls[asked].claim = mine;
        end_call(asked, call::answer::done, me_.present(), me_.when(until));
        auto const left = machine.what_is_left();
        auto const token = owner_token::from_bits(me_.random(), me_.random());
        acquiring.reset();
        co_await hold({.token = token, .valid_until = until, .fence = fence, .ttl = ttl}, left, mine, work);
    }

    sim::process hold(grant got, zookeeper::remains node, std::size_t mine, duration work)
    {
        auto const leave_at = me_.present() + work;
        detail::lock_owner owner{.held = {}, .token = {}, .options = options_};
        detail::waiter in_line{owner};
        detail::tenure tenure;
        tenure.begin(got, options_);
        tenure.give(in_line, tenure.deadline_for(got.valid_until));
        auto const held = tenure.holder();
        bool lost = false;
        while (!lost) {
            co_await me_.sleep_until(std::min(leave_at, me_.when(std::min(held->deadline(), tenure.renew_at()))));
            if (!held->still_held()) break;
            record_.claims[mine].valid_until =
                std::max(record_.claims[mine].valid_until, me_.when(held->deadline() + announcement_margin(options_->ttl)));
            if (me_.present() >= leave_at) break;
            if (me_.now() < tenure.renew_at()) continue;
            auto const request = tenure.ask(tenure.ttl());
            auto const asked = begin_call(call::kind::renew, mine);
            confirmation question{*this, node.node};
            auto const limit = me_.present() + servers_.timeout() / 2;
            while (!question.said() && !question.over() && me_.present() < limit) co_await news(limit);
            auto const there =
                question.said() && question.said()->what == zookeeper::answer::ok && question.said()->stat.czxid == node.czxid;
            if (there) {
                auto const until = session_.lease().until();
                end_call(asked, call::answer::done, me_.present(), me_.when(until));
                if (tenure.renew(request, until)) {
                    note("renewed", 0);
                    ++record_.verdict.renewed;
                    record_.claims[mine].valid_until = std::max(record_.claims[mine].valid_until, me_.when(until));
                    continue;
                }
                lost = true;
            } else if (question.said() || question.over()) {
                end_call(asked, call::answer::refused, me_.present());
                lost = true;
            } else {
                tenure.retry_later();
            }
        }
        if (lost || !held->still_held()) {
            note("LOST, fence", got.fence);
            ++record_.verdict.lost;
        }
        record_.claims[mine].ended = std::min(record_.claims[mine].ended, me_.present());
        if (!plan_.calm && one_in(me_.world().now() >= plan_.end ? 3 : 30)) {
            note("DIES, fence", got.fence);
            record_.claims[mine].ended = time_point::max();
            erasers_.clear();
            session_.die();
            co_return;
        }
        note("releases, fence", got.fence);
        begin_call(call::kind::release, mine);  // it goes on by itself until it is certain
        remove(std::move(node));
    }

    /// Effects: removes what is left of an acquire or a hold, in the background.
    void remove(zookeeper::remains what)
    {
        erasers_.remove_if([](auto const& one) { return one->machine.done(); });
        erasers_.push_back(std::make_unique<removal>(*this, std::move(what)));
        erasers_.back()->start();
    }

    void wake()
    {
        if (!waiter_ || std::exchange(waking_, true)) return;
        me_.at(me_.present(), [this, mine = wait_] {
            waking_ = false;
            resume(mine);
        });
    }

    void resume(std::uint64_t wait)
    {
        if (wait != wait_ || !waiter_) return;
        std::exchange(waiter_, nullptr).resume();
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
    void note(std::string_view what, std::uint64_t value) { me_.world().note(what, me_.index(), sim::event::nobody, value); }

    sim::host& me_;
    zookeeper_servers& servers_;
    zookeeper_plan const& plan_;
    record& record_;
    zookeeper_session session_;
    std::shared_ptr<lock_options> options_ = std::make_shared<lock_options>();
    std::list<std::unique_ptr<removal>> erasers_;
    std::coroutine_handle<> waiter_;
    std::uint64_t wait_ = 0;
    bool waking_ = false;
    std::uint32_t operations_ = 0;
};

}  // namespace holdfast::test
