// SPDX-License-Identifier: MIT
//
// Threads that want one lock, and the store that they ask for it.
#include "conformance/sleeper.hpp"
#include "fake_store.hpp"
#include "support/catch.hpp"
#include "support/code_of.hpp"
#include "support/eventually.hpp"

#include <holdfast/adapters/run_once.hpp>
#include <holdfast/asio/async_guard.hpp>
#include <holdfast/mutex.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::errc;
using holdfast::lock_options;
using holdfast::mutex;
using holdfast::test::code_of;
using holdfast::test::eventually;
using holdfast::test::fake_client;
using holdfast::test::fake_store;
using holdfast::test::sleeper;

namespace {

/// Effects: gives up `m`; that takes so long that the pause for those who are known to wait is the longest there is,
/// 100 ms.
void unlock_slowly(fake_store& store, mutex& m)
{
    auto const before = store.releases.size();
    store.releases.answered_at_once = false;
    sleeper unlocks{[&] { m.unlock(); }};
    CHECK(eventually([&] { return store.releases.size() > before; }));
    std::this_thread::sleep_for(50ms);
    store.answer_releases();
    unlocks.join();
}

/// Returns: the time from the answer of the last release to the next acquire.
boot_clock::duration last_pause(fake_store& store)
{
    return store.acquires.last()->begun.load() - store.releases.last()->answered_at.load();
}

}  // namespace

TEST_CASE("a lease that the store has ended is passed to nobody")
{
    fake_client f;
    bool const ended = GENERATE(false, true);
    mutex one{f.locks, "orders", lock_options{}};
    mutex other{f.locks, "orders", lock_options{}};
    one.lock();
    auto const lease = one.lease();
    sleeper next{[&] { other.lock(); }};
    CHECK(next.sleeps());
    f.store->ends_lease = ended;
    std::error_code ec;
    one.unlock(ec);
    next.join();
    CHECK((ec == errc::lease_lost) == ended);
    CHECK(lease.lost_token().stop_requested() == ended);
    CHECK((other.lease().fencing_token() > lease.fencing_token() + 1) ==
          ended);  // of another batch: it asked the store
}

TEST_CASE("an alarm ends the leases that the store has ended, renewed or not")
{
    fake_client f;
    mutex m{f.locks, "orders", lock_options{.ttl = 1h, .renew = GENERATE(true, false)}};
    m.lock();
    auto const lease = m.lease();
    f.store->alarm();
    CHECK_FALSE(eventually([&] { return !lease.still_held(); }, 50ms));
    f.store->ends_lease = true;
    f.store->alarm();
    CHECK(eventually([&] { return lease.lost_token().stop_requested(); }));
    CHECK_FALSE(lease.still_held());
}

TEST_CASE("of a lease whose session ended the loss says so, also if a renewal was answered meanwhile")
{
    fake_client f;
    f.store->serves = true;
    f.store->extends.answered_at_once = false;
    std::mutex mutex;
    std::string told;
    auto const on_error = [&](holdfast::error const& e) {
        std::scoped_lock guard{mutex};
        told = e.what();
    };
    holdfast::mutex m{f.locks, "orders", lock_options{.ttl = 1h, .on_error = on_error}};
    m.lock();
    f.store->alarm();  // it is renewed
    REQUIRE(eventually([&] { return f.store->extends.size() == 1 && f.store->served > 0; }));
    f.store->keeps_server = true;
    f.store->ends_lease = true;
    f.store->alarm();
    f.store->extends.at(0)->answer(errc::lease_lost);
    f.store->keeps_server = false;
    CHECK(eventually([&] {
        std::scoped_lock guard{mutex};
        return told.find("the store ended the session that held it") != std::string::npos;
    }));
}

TEST_CASE("an alarm that comes before the holder has heard of its grant ends the lease, renewed or not")
{
    fake_client f;
    mutex m{f.locks, "orders", lock_options{.ttl = 1h, .renew = GENERATE(true, false)}};
    f.store->acquires.answered_at_once = false;
    sleeper locks{[&] { m.lock(); }};
    CHECK(eventually([&] { return f.store->acquires.size() == 1; }));
    f.store->ends_lease = true;
    f.store->alarm();
    f.store->grant_to(0);
    locks.join();
    auto const lease = m.lease();
    CHECK(eventually([&] { return lease.lost_token().stop_requested(); }));
    CHECK_FALSE(lease.still_held());
    std::error_code ec;
    m.unlock(ec);
    CHECK(ec == errc::lease_lost);
    f.store->acquires.answered_at_once = true;
    m.lock();
    CHECK(m.lease().still_held());
}

TEST_CASE("the callback of a loss that an extend finds may destroy the last lock")
{
    auto f = std::make_optional<fake_client>();
    auto m = std::make_unique<mutex>(f->locks, std::string(100, 'x'), lock_options{.ttl = 1h});
    m->lock();
    f->store->ends_lease = true;
    std::stop_callback const on_loss{m->lease().lost_token(), [&] {
                                         f.reset();
                                         m.reset();
                                     }};
    std::error_code ec;
    if (GENERATE(false, true)) {
        CHECK_FALSE(m->extend(1h, ec));
    } else {
        try {
            m->extend(1h);
        } catch (holdfast::error const& e) {
            ec = e.code();
            CHECK(std::string{e.what()}.find(std::string(100, 'x')) != std::string::npos);
        }
    }
    CHECK(ec == errc::lease_lost);
    CHECK_FALSE(m);
}

TEST_CASE("the next in line asks when the release is answered, a deferred one, too")
{
    fake_client f;
    lock_options const options{.max_local_handoffs = 0, .deferred_release = GENERATE(false, true)};
    mutex one{f.locks, "orders", options};
    mutex other{f.locks, "orders", options};
    one.lock();
    sleeper next{[&] { other.lock(); }};
    CHECK(next.sleeps());
    f.store->releases.answered_at_once = false;
    sleeper unlocks{[&] { one.unlock(); }};
    CHECK(unlocks.sleeps());
    CHECK(next.sleeps());
    CHECK(f.store->acquires.size() == 1);
    f.store->answer_releases();
    unlocks.join();
    next.join();
    CHECK(last_pause(*f.store) >= 0ns);
    CHECK(f.store->acquires.size() == 2);
    f.store->releases.answered_at_once = false;
    sleeper unlocks_last{[&] { other.unlock(); }};
    CHECK(eventually([&] { return f.store->releases.size() == 2; }));
    if (options.deferred_release) {
        unlocks_last.join();  // no thread here waits for the answer
        f.store->answer_releases();
    } else {
        CHECK(unlocks_last.sleeps());
        CHECK_FALSE(unlocks_last.done());
        f.store->answer_releases();
        unlocks_last.join();
    }
}

TEST_CASE("where others wait, they have the time to ask before anybody here does, who has the time and wants to wait")
{
    fake_client f;
    mutex one{f.locks, "orders", lock_options{.max_local_handoffs = 0}};
    mutex other{f.locks, "orders", lock_options{.max_local_handoffs = 0}};
    f.store->others_wait = true;
    one.lock();
    sleeper next{[&] { other.lock(); }};
    CHECK(next.sleeps());
    f.store->releases.answered_at_once = false;
    sleeper unlocks{[&] { one.unlock(); }};
    CHECK(eventually([&] { return f.store->releases.size() == 1; }));
    std::this_thread::sleep_for(50ms);  // which makes the pause the longest there is
    f.store->answer_releases();
    unlocks.join();
    next.join();
    constexpr auto pause = 100ms;
    CHECK(last_pause(*f.store) >= pause);

    other.unlock();
    CHECK(one.try_lock());  // a single attempt answers at once
    unlock_slowly(*f.store, one);
    auto const acquires = f.store->acquires.size();
    std::stop_source stop;
    sleeper stopped{[&] { return other.lock(stop.get_token()); }};
    stop.request_stop();
    if (stopped.join())
        CHECK(last_pause(*f.store) >= pause);  // its thread came late
    else
        CHECK(f.store->acquires.size() == acquires);
    other.unlock();
    CHECK(other.try_lock_for(1min));
    other.unlock();
}

TEST_CASE("behind a guard that does not wait, too, others have the time to ask before anybody does who waits here")
{
    fake_client f;
    mutex one{f.locks, "orders", lock_options{.max_local_handoffs = 0}};
    mutex other{f.locks, "orders", lock_options{.max_local_handoffs = 0}};
    f.store->others_wait = true;
    one.lock();
    holdfast::async_guard hold{one, std::adopt_lock};
    sleeper next{[&] { other.lock(); }};
    CHECK(next.sleeps());
    f.store->releases.answered_at_once = false;
    hold.give_back();
    CHECK(f.store->releases.size() == 1);
    std::this_thread::sleep_for(50ms);
    CHECK(f.store->acquires.size() == 1);
    f.store->answer_releases();
    next.join();
    CHECK(last_pause(*f.store) >= 100ms);

    f.store->releases.answered_at_once = false;
    holdfast::async_guard{other, std::adopt_lock}.give_back();
    one.lock();  // who comes then does not wait for the answer
    CHECK(f.store->acquires.size() == 3);
    CHECK_FALSE(f.store->releases.last()->outcome());
    f.store->answer_releases();
    one.unlock();
    CHECK(f.store->broken == 0);
}

TEST_CASE("a guard that does not wait has its release served for those who wait here")
{
    fake_client f;
    mutex one{f.locks, "orders", lock_options{.max_local_handoffs = 0}};
    mutex other{f.locks, "orders", lock_options{.max_local_handoffs = 0}};
    f.store->serves = true;
    one.lock();
    holdfast::async_guard hold{one, std::adopt_lock};
    sleeper next{[&] { other.lock(); }};
    CHECK(next.sleeps());
    f.store->releases.answered_at_once = false;
    hold.give_back();
    CHECK(eventually([&] { return f.store->served > 0; }));
    f.store->answer_releases();
    next.join();
    other.unlock();
}

TEST_CASE("who has no time for the whole pause has what it has of it, and then asks once")
{
    fake_client f;
    mutex m{f.locks, "orders", {}};
    f.store->others_wait = true;
    m.lock();
    unlock_slowly(*f.store, m);
    CHECK(m.try_lock_for(20ms));
    CHECK(last_pause(*f.store) >= 20ms);
    CHECK(f.store->acquires.size() == 2);
}

TEST_CASE("an attempt that has no time puts the pause off once")
{
    fake_client f;
    auto const time = GENERATE(0ms, 3ms);
    mutex m{f.locks, "orders", {}};
    f.store->others_wait = true;
    m.lock();
    auto const pause_of_the_next = [&] {
        unlock_slowly(*f.store, m);
        CHECK(eventually([&] { return time == 0ms ? m.try_lock() : m.try_lock_for(time); }));
        return last_pause(*f.store);
    };
    REQUIRE(eventually([&] { return pause_of_the_next() < 100ms; }));
    CHECK(pause_of_the_next() >= 100ms);
    CHECK(eventually([&] { return pause_of_the_next() < 100ms; }));
}

TEST_CASE("a lock whose grants are heard of late was not left free meanwhile: those who poll get their pause")
{
    fake_client f;
    mutex m{f.locks, "orders", {}};
    f.store->acquires.answered_at_once = false;
    boot_clock::duration longest{};
    for (std::size_t n = 0; n < 20; ++n) {
        sleeper locks{[&] { m.lock(); }};
        REQUIRE(eventually([&] { return f.store->acquires.size() == n + 1; }));
        if (n > 0) longest = std::max(longest, last_pause(*f.store));
        auto const asked = f.store->acquires.last();
        std::this_thread::sleep_for(10ms);
        auto got = f.store->granted(*asked->request);
        got.valid_until = holdfast::valid_until(asked->begun.load(), asked->ttl);
        asked->answer(got);
        locks.join();
        m.unlock();
    }
    CHECK(longest >= 5ms);
}

TEST_CASE("a lease that could not be asked to be shorter ends when it was to end then, and is announced")
{
    fake_client f;
    mutex m{f.locks, "orders", {.ttl = 1h}};
    m.lock();
    auto const lost = m.lease().lost_token();
    f.store->cannot_extend = true;
    std::error_code ec;
    CHECK_FALSE(m.extend(200ms, ec));
    CHECK(ec == std::errc::not_enough_memory);
    CHECK(eventually([&] { return lost.stop_requested(); }));
    CHECK_FALSE(m.lease().still_held());
}

TEST_CASE("a lease that is being extended is passed to nobody, and the answer is not the next holder's")
{
    fake_client f;
    mutex one{f.locks, "orders", lock_options{.ttl = 30s}};
    mutex next{f.locks, "orders", lock_options{.ttl = 30s}};
    one.lock();
    sleeper waits{[&] { next.lock(); }};
    CHECK(waits.sleeps());
    f.store->extends.answered_at_once = false;
    std::error_code extended;
    sleeper extends{[&] { return one.extend(1h, extended); }};
    CHECK(extends.sleeps());
    sleeper unlocks{[&] { one.unlock(); }};
    waits.join();
    f.store->answer_extends();
    unlocks.join();
    CHECK_FALSE(extends.join());
    CHECK(extended == errc::lease_lost);
    CHECK(next.lease().still_held());
    CHECK(next.lease().remaining() <= 30s);
    next.unlock();
}

TEST_CASE("who waits behind one whose attempt is not answered yet is told what the one before it saw")
{
    fake_client f;
    mutex one{f.locks, "orders", {}};
    mutex other{f.locks, "orders", {}};
    mutex third{f.locks, "orders", {}};
    f.store->acquires.answered_at_once = false;
    sleeper asks{[&] { return code_of([&] { (void)one.try_lock_for(1h); }) == errc::unavailable; }};
    CHECK(eventually([&] { return f.store->acquires.size() == 1; }));
    sleeper follows{[&] { return code_of([&] { (void)other.try_lock_for(1h); }) == errc::unavailable; }};
    CHECK(follows.sleeps());
    auto const behind = [&] { return code_of([&] { (void)third.try_lock_for(1ms); }); };
    CHECK(behind() == std::error_code{});  // nothing is known
    f.store->unavailable = 1;
    CHECK(behind() == errc::unavailable);
    f.store->refuse(0, make_error_code(errc::unavailable));
    CHECK(asks.join());
    CHECK(eventually([&] { return f.store->acquires.size() == 2; }));
    CHECK(follows.sleeps());
    f.store->unavailable = -1;
    CHECK(behind() == errc::unavailable);  // nothing else is known
    f.store->unavailable = 0;
    CHECK(behind() == std::error_code{});
    f.store->refuse(1, make_error_code(errc::unavailable));
    CHECK(follows.join());
}

TEST_CASE("a waiter whose turn comes when its time is over asks for nothing, and the next in line does")
{
    fake_client f;
    lock_options const options{.max_local_handoffs = 0};
    mutex one{f.locks, "orders", options};
    mutex hurried{f.locks, "orders", options};
    mutex patient{f.locks, "orders", options};
    one.lock();
    auto const deadline = boot_clock::now() + 300ms;
    sleeper waits{[&] { return hurried.try_lock_until(deadline); }};
    CHECK(waits.sleeps());
    sleeper waits_long{[&] { patient.lock(); }};
    CHECK(waits_long.sleeps());
    auto const before = f.store->acquires.size();
    f.store->releases.answered_at_once = false;
    sleeper unlocks{[&] { one.unlock(); }};
    CHECK(eventually([&] { return boot_clock::now() > deadline && unlocks.sleeps(); }));
    f.store->answer_releases();
    CHECK_FALSE(waits.join());
    waits_long.join();
    CHECK(f.store->acquires.size() == before + 1);
    CHECK(patient.lease().still_held());
    unlocks.join();
    patient.unlock();
    CHECK(hurried.try_lock());
    hurried.unlock();
}

TEST_CASE("operations that end inside their start do what they are asked")
{
    fake_client f;
    mutex m{f.locks, "orders", lock_options{.ttl = 1h}};
    mutex other{f.locks, "orders", lock_options{.ttl = 1h, .max_local_handoffs = 0}};
    m.lock();
    auto const lease = m.lease();
    std::error_code ec;
    CHECK(m.extend(2h, ec));
    CHECK(eventually([&] {
        f.store->alarm();  // it is renewed
        return f.store->extends.size() >= 3;
    }));
    CHECK(lease.still_held());
    sleeper waits{[&] { return other.try_lock_for(1min); }};
    CHECK(waits.sleeps());
    m.unlock(ec);
    CHECK(ec == std::error_code{});
    CHECK(waits.join());
    other.unlock(ec);
    CHECK(ec == std::error_code{});
    CHECK(m.try_lock());
    m.unlock();
    CHECK(f.store->releases.size() == 3);
    CHECK(f.store->broken == 0);
}

TEST_CASE("operations that end in another thread do what they are asked")
{
    fake_client f;
    mutex m{f.locks, "orders", lock_options{.ttl = 1h}};
    f.store->acquires.answered_at_once = f.store->extends.answered_at_once = f.store->releases.answered_at_once = false;
    sleeper locks{[&] { m.lock(); }};
    CHECK(eventually([&] { return f.store->acquires.size() == 1; }));
    CHECK(locks.sleeps());
    f.store->grant_to(0);
    locks.join();
    auto const lease = m.lease();
    auto const end = lease.expires_at();
    f.store->alarm();  // it is renewed
    CHECK(eventually([&] { return f.store->extends.size() == 1; }));
    f.store->answer_extends();
    CHECK(eventually([&] { return lease.expires_at() > end; }));
    sleeper unlocks{[&] {
        std::error_code ec;
        m.unlock(ec);
        return !ec;
    }};
    CHECK(eventually([&] { return f.store->releases.size() == 1; }));
    CHECK(unlocks.sleeps());
    CHECK(f.store->releases.at(0)->token == f.store->extends.at(0)->token);
    f.store->answer_releases();
    CHECK(unlocks.join());
    CHECK(f.store->broken == 0);
}

TEST_CASE(
    "a renewal that is not answered when the lock is given back is canceled, and the next lease has renewals of its own")
{
    fake_client f;
    mutex m{f.locks, "orders", lock_options{.ttl = 1h}};
    f.store->extends.answered_at_once = false;
    m.lock();
    f.store->alarm();  // it is renewed
    CHECK(eventually([&] { return f.store->extends.size() == 1; }));
    m.unlock();
    CHECK(f.store->extends.at(0)->canceled);
    m.lock();
    auto const lease = m.lease();
    auto const end = lease.expires_at();
    f.store->alarm();
    CHECK(eventually([&] { return f.store->extends.size() == 2; }));
    f.store->answer_extends();
    CHECK(eventually([&] { return lease.expires_at() > end; }));
    CHECK(lease.still_held());
    m.unlock();
    CHECK(f.store->broken == 0);
}

TEST_CASE("an acquire that cannot be started throws, and the next in line has its turn")
{
    fake_client f;
    mutex one{f.locks, "orders", {}};
    mutex other{f.locks, "orders", {}};
    f.store->start_throws = true;
    CHECK(code_of([&] { one.lock(); }) == errc::misconfigured);
    CHECK(code_of([&] { static_cast<void>(one.try_lock()); }) == errc::misconfigured);
    f.store->start_throws = false;
    f.store->acquires.answered_at_once = false;
    sleeper asks{[&] { return code_of([&] { one.lock(); }) == errc::unavailable; }};
    CHECK(eventually([&] { return f.store->acquires.size() == 1; }));
    sleeper follows{[&] { return code_of([&] { other.lock(); }) == errc::misconfigured; }};
    CHECK(follows.sleeps());
    f.store->start_throws = true;
    f.store->refuse(0, make_error_code(errc::unavailable));
    CHECK(asks.join());
    CHECK(follows.join());
    f.store->start_throws = false;
    f.store->acquires.answered_at_once = true;
    CHECK(one.try_lock());
    one.unlock();
    CHECK(f.store->broken == 0);
}

TEST_CASE("a stop ends a wait in line, and the holder and the other waiters go on")
{
    fake_client f;
    mutex one{f.locks, "orders", {}};
    mutex stopped{f.locks, "orders", {}};
    mutex other{f.locks, "orders", {}};
    one.lock();
    std::stop_source stop;
    sleeper waits{[&] { return stopped.lock(stop.get_token()); }};
    CHECK(waits.sleeps());
    sleeper waits_behind{[&] { other.lock(); }};
    CHECK(waits_behind.sleeps());
    stop.request_stop();
    CHECK_FALSE(waits.join());
    CHECK(one.lease().still_held());
    CHECK_FALSE(waits_behind.done());
    one.unlock();
    waits_behind.join();
    CHECK(f.store->acquires.size() == 1);
    other.unlock();
}

TEST_CASE("a stop in the pause before the request asks for nothing")
{
    fake_client f;
    mutex one{f.locks, "orders", {}};
    f.store->others_wait = true;
    one.lock();
    unlock_slowly(*f.store, one);
    std::stop_source stop;
    sleeper waits{[&] { return one.lock(stop.get_token()); }};
    stop.request_stop();
    if (!waits.join()) {  // otherwise its thread came late
        CHECK(f.store->acquires.size() == 1);
        CHECK(one.try_lock_for(1min));
    }
    one.unlock();
    CHECK(f.store->broken == 0);
}

TEST_CASE("a stop cancels the request, and what it got all the same is held")
{
    fake_client f;
    mutex one{f.locks, "orders", {}};
    mutex other{f.locks, "orders", {}};
    f.store->acquires.answered_at_once = false;
    f.store->cancel_ends = GENERATE(true, false);
    bool const granted = !f.store->cancel_ends && GENERATE(true, false);
    std::stop_source stop;
    sleeper waits{[&] { return one.lock(stop.get_token()); }};
    CHECK(eventually([&] { return f.store->acquires.size() == 1; }));
    CHECK(waits.sleeps());
    sleeper waits_behind{[&] { return other.try_lock_for(1min); }};
    CHECK(waits_behind.sleeps());
    stop.request_stop();
    CHECK(f.store->acquires.at(0)->canceled);
    if (!f.store->cancel_ends) {
        CHECK(waits.sleeps());
        CHECK_FALSE(waits.done());
        if (granted)
            f.store->grant_to(0);
        else
            f.store->refuse(0, std::make_error_code(std::errc::operation_canceled));
    }
    CHECK(waits.join() == granted);
    CHECK(one.lease().still_held() == granted);
    if (granted) {
        one.unlock();  // to the next
    } else {
        CHECK(eventually([&] { return f.store->acquires.size() == 2; }));
        f.store->grant_to(1);
    }
    CHECK(waits_behind.join());
    other.unlock();
    CHECK(f.store->broken == 0);
}

TEST_CASE("the answer to a deferred release may be told inside another operation's start, also of the same lock")
{
    fake_client f;
    mutex one{f.locks, "orders", lock_options{.deferred_release = true}};
    mutex other{f.locks, "invoices", {}};
    f.store->others_wait = true;
    one.lock();
    f.store->releases.answered_at_once = false;
    one.unlock();
    CHECK(f.store->releases.size() == 1);
    f.store->when_started = [&] { f.store->answer_releases(); };
    sleeper locks{[&, m = GENERATE(0, 1)] { return (m == 0 ? one : other).try_lock_for(1min); }};
    CHECK(eventually([&] { return locks.done(); }, 20s));
    REQUIRE(locks.done());
    CHECK(locks.join());
    CHECK(f.store->broken == 0);
}

TEST_CASE("a job that nobody has begun is not refused because another thread asks for it, or because it was just free")
{
    fake_client f;
    auto const job = [&] { return holdfast::run_once(f.locks, "report", 1h, [] {}); };
    SECTION("the other one fails")
    {
        int too_late = 0;
        CHECK(eventually([&] {
            fake_client of;
            auto const ask = [&] { return holdfast::run_once(of.locks, "report", 1h, [] {}); };
            of.store->acquires.answered_at_once = false;
            sleeper first{[&] { return code_of(ask) == errc::unavailable; }};
            CHECK(eventually([&] { return of.store->acquires.size() == 1; }));
            auto const begun = boot_clock::now();
            sleeper second{[&] {
                bool called = false;
                return !code_of([&] { called = ask(); }) && called;
            }};
            CHECK(eventually([&] { return of.locks.stats().waiting == 2 || second.done(); }));
            CHECK(second.sleeps());
            bool const late = boot_clock::now() - begun >= 500ms;  // it waits for a second
            of.store->acquires.answered_at_once = true;
            of.store->refuse(0, make_error_code(errc::unavailable));
            CHECK(first.join());
            bool const got = second.join();
            CHECK((got || late || ++too_late <= 3));
            return got;
        }));
    }
    SECTION("the other one never ends")
    {
        f.store->acquires.answered_at_once = false;
        sleeper first{[&] { static_cast<void>(code_of([&] { job(); })); }};
        CHECK(eventually([&] { return f.store->acquires.size() == 1; }));
        CHECK(code_of([&] { job(); }) == errc::unavailable);
        f.store->refuse(0, make_error_code(errc::unavailable));
        first.join();
    }
    SECTION("it has failed twice in succession")
    {
        for (int i = 0; i < 2; ++i)
            CHECK_THROWS_AS(holdfast::run_once(f.locks, "report", 1h,
                                               [] {
                                                   std::this_thread::sleep_for(100ms);
                                                   throw std::runtime_error{"no paper"};
                                               }),
                            std::runtime_error);
        CHECK(job());
    }
}
