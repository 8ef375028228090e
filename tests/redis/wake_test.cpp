// SPDX-License-Identifier: MIT
//
// How waiters learn that a lock is free, and what their waiting costs.
#include "conformance/sleeper.hpp"
#include "observed.hpp"
#include "line_of_orders.hpp"
#include "support/catch.hpp"
#include "support/connection.hpp"
#include "support/eventually.hpp"
#include "support/first_waiter.hpp"
#include "support/process.hpp"
#include "support/proxy.hpp"
#include "support/shared.hpp"
#include "support/sleeps.hpp"

#include <holdfast/redis.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <stop_token>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::redis::client;
using holdfast::redis::mutex;
using holdfast::test::calls;
using holdfast::test::containing;
using holdfast::test::eventually;
using holdfast::test::first_waiter;
using holdfast::test::lock_requests;
using holdfast::test::proxy;
using holdfast::test::redis_server;
using holdfast::test::sleeper;
using holdfast::test::unhurried;
using holdfast::test::waiters;

namespace {

/// Options with which nothing but a message wakes a waiter within the time of a test.
holdfast::lock_options patient() { return {.ttl = 1h, .retry = {.most = 1h}}; }

/// Returns: how often a waiter that is not called may have looked in a time: after 1/8, 1/4, 1/2 s … at the earliest.
int looks_within(boot_clock::duration time)
{
    auto count = 0;
    for (boot_clock::duration pause = 125ms, waited = pause; waited <= time; waited += pause *= 2) ++count;
    return count;
}

/// What a process that rests says of itself.
struct rest {
    std::atomic<bool> begins{false};
    std::atomic<long> sleeps{0};  ///< how often its threads waited for something meanwhile
    std::atomic<boot_clock::rep> took{0};

    /// Returns: whether it was told to begin, and has rested.
    bool go()
    {
        if (!eventually([&] { return begins.load(); }, 5min)) return false;
        auto const begun = boot_clock::now();
        auto const before = holdfast::test::sleeps_of(RUSAGE_SELF);
        std::this_thread::sleep_for(3s);
        sleeps = holdfast::test::sleeps_of(RUSAGE_SELF) - before;
        took = (boot_clock::now() - begun).count();
        return true;
    }
};

}  // namespace

TEST_CASE("a release wakes the waiter of another client at once, without polling")
{
    redis_server server;
    client redis{server.url(), unhurried()};
    client elsewhere{server.url(), unhurried()};
    bool const fencing = GENERATE(true, false);
    auto options = patient();
    options.fencing = fencing;
    mutex m{redis, "orders", options};
    mutex waiting{elsewhere, "orders", options};
    for (int i = 0; i < 5; ++i) {
        m.lock();
        std::jthread waiter{[&] { waiting.lock(); }};
        CHECK(eventually([&] { return waiters(server) == 1; }));
        m.unlock();
        waiter.join();
        waiting.unlock();
    }
    CHECK(eventually([&] { return waiters(server) == 0; }));
}

TEST_CASE("a release wakes waiters of several clients, and each gets its turn", "[lesson-11]")
{
    redis_server server;
    client redis{server.url(), unhurried()};
    mutex m{redis, "orders", patient()};
    m.lock();
    std::atomic<int> turns{0};
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&] {
            client mine{server.url(), unhurried()};
            mutex waiting{mine, "orders", patient()};
            waiting.lock();
            ++turns;
            waiting.unlock();
        });
    CHECK(eventually([&] { return waiters(server) == 4; }));
    m.unlock();
    CHECK(eventually([&] { return turns == 4; }, 30s));
    threads.clear();
    CHECK(eventually([&] { return waiters(server) == 0; }));
}

TEST_CASE("a waiter asks once when it comes, once when it is subscribed, and then ever less often", "[lesson-11]")
{
    redis_server server;
    client redis{server.url(), unhurried()};
    client elsewhere{server.url(), unhurried()};
    mutex m{redis, "orders", patient()};
    mutex waiting{elsewhere, "orders", patient()};
    m.lock();
    auto const before = lock_requests(server);
    auto const begun = boot_clock::now();
    std::stop_source stop;
    std::jthread waiter{[&] { (void)waiting.lock(stop.get_token()); }};
    CHECK(eventually([&] { return waiters(server) == 1; }));
    auto const asked = [&] { return lock_requests(server) - before; };
    CHECK(eventually([&] { return asked() >= 2; }));
    std::this_thread::sleep_for(1s);
    // EVALSHA twice, EVAL where the script was unknown.
    auto const most = [&] { return 4 + looks_within(boot_clock::now() - begun); };
    auto const did = asked();
    CHECK(did <= most());
    stop.request_stop();
    waiter.join();
    CHECK(eventually([&] { return waiters(server) == 0; }));
}

TEST_CASE(
    "messages without end have the waiter for a lock that is held ask at a bounded rate, and a release among them is noticed")
{
    redis_server server;
    client redis{server.url(), unhurried()};
    client elsewhere{server.url(), unhurried()};
    mutex m{redis, "orders", patient()};
    mutex waiting{elsewhere, "orders", patient()};
    m.lock();
    std::jthread waiter{[&] { waiting.lock(); }};
    CHECK(eventually([&] { return waiters(server) == 1; }));
    std::jthread const spammer{[&](std::stop_token const& stop) {
        holdfast::test::connection publisher{server.port()};
        auto const called = first_waiter(publisher, "orders");
        while (!stop.stop_requested()) publisher({"PUBLISH", called.channel, called.text});
    }};
    CHECK(eventually([&] { return calls(server, "publish") > 100; }));
    auto const before = lock_requests(server);
    auto const begun = boot_clock::now();
    std::this_thread::sleep_for(3s);
    auto const asked = lock_requests(server) - before;
    CHECK(asked < 500 * std::chrono::ceil<std::chrono::seconds>(boot_clock::now() - begun).count());
    m.unlock();
    waiter.join();
    waiting.unlock();
}

TEST_CASE("who wants no messages looks now and then, and gets the lock without a subscription", "[lesson-12]")
{
    redis_server server;
    client redis{server.url(), unhurried()};
    auto options = unhurried();
    options.subscribe = false;
    client elsewhere{server.url(), options};
    mutex m{redis, "orders", patient()};
    mutex waiting{elsewhere, "orders", patient()};
    m.lock();
    auto const before = lock_requests(server);
    std::jthread waiter{[&] { waiting.lock(); }};
    CHECK(eventually([&] { return lock_requests(server) - before >= 4; }));
    m.unlock();
    waiter.join();
    waiting.unlock();
    CHECK(calls(server, "subscribe") == 0);
    CHECK(server.command({"CLIENT", "LIST", "TYPE", "pubsub"}).text.empty());
}

TEST_CASE("a release while a waiter is still subscribing is not missed", "[lesson-11]")
{
    redis_server server;
    proxy way{server.port()};
    client redis{server.url(), unhurried()};
    client elsewhere{way.url(), unhurried()};
    mutex m{redis, "orders", patient()};
    mutex waiting{elsewhere, "orders", patient()};
    m.lock();
    way.hold(containing("SUBSCRIBE"));
    std::atomic<bool> done{false};
    std::jthread waiter{[&] { done = waiting.try_lock_for(60s); }};
    CHECK(eventually([&] { return way.held() == 1; }));
    m.unlock();  // which is published to nobody
    way.let_go();
    CHECK(eventually([&] { return done.load(); }, 90s));
}

TEST_CASE("a waiter is woken by the end of a crashed holder's lease", "[lesson-11]")
{
    redis_server server;
    client redis{server.url(), unhurried()};
    server.command({"SET", "orders", "of a process that is gone", "NX", "PX", "700"});
    bool const fencing = GENERATE(true, false);
    auto options = patient();
    options.fencing = fencing;
    mutex m{redis, "orders", options};
    CHECK(m.try_lock_for(60s));
}

TEST_CASE("a key that does not expire is looked at now and then")
{
    redis_server server;
    client redis{server.url(), unhurried()};
    server.command({"SET", "orders", "of a client that sets no expiry"});
    mutex m{redis, "orders", {.retry = {.most = 200ms}}};
    CHECK_FALSE(m.try_lock());
    std::atomic<bool> done{false};
    std::jthread waiter{[&] {
        m.lock();
        done = true;
    }};
    CHECK(eventually([&] { return waiters(server) == 1; }));
    auto const before = lock_requests(server);
    auto const begun = boot_clock::now();
    CHECK(eventually([&] { return lock_requests(server) > before; }));
    std::this_thread::sleep_for(1s);
    auto const asked = lock_requests(server) - before;
    CHECK(asked <= 4 + 2 * ((boot_clock::now() - begun) / 200ms));  // no busy waiting
    CHECK_FALSE(done);
    server.command({"DEL", "orders"});  // and nobody publishes it
    CHECK(eventually([&] { return done.load(); }));
}

TEST_CASE("a key of another type counts as held, whatever it is")
{
    redis_server server;
    client redis{server.url(), unhurried()};
    server.command({"HSET", "orders", "0f0e0d0c-0b0a-0908-0706-050403020100:1", "1"});
    server.command({"PEXPIRE", "orders", "600"});
    server.command({"LPUSH", "list", "x"});
    for (bool const fencing : {true, false}) {
        mutex list{redis, "list", {.fencing = fencing}};
        CHECK_FALSE(list.try_lock());
        CHECK_FALSE(list.try_lock_for(50ms));
    }
    CHECK(server.command({"LLEN", "list"}).integer == 1);
    mutex m{redis, "orders", patient()};
    CHECK(m.try_lock_for(60s));  // when the other library's lock has expired
}

TEST_CASE("a waiter that gives up leaves a key alone that holds as many zero bytes as a token has letters")
{
    redis_server server;
    client redis{server.url(), unhurried()};
    mutex waiting{redis, "orders", patient()};
    server.command({"SETBIT", "orders", "255", "0"});
    std::stop_source stop;
    std::jthread waiter{[&] { CHECK_FALSE(waiting.lock(stop.get_token())); }};
    CHECK(eventually([&] { return waiters(server) == 1; }));
    stop.request_stop();
    waiter.join();
    CHECK(eventually([&] { return waiters(server) == 0; }));
    CHECK(holdfast::test::exists(server, "orders"));
}

TEST_CASE("a client that has held a lock for a second leaves it free for 20 ms when it is called, for those who poll")
{
    redis_server server;
    client redis{server.url(), unhurried()};
    client elsewhere{server.url(), unhurried()};
    mutex m{redis, "orders", patient()};
    mutex other{elsewhere, "orders", patient()};
    // One that was not called yet also looks by itself, after a quarter of a second, and asks at once then.
    auto const leaves_it_free = [&] {
        m.lock();
        std::this_thread::sleep_for(1s);  // it is used for so long
        sleeper next{[&] { other.lock(); }};
        CHECK(eventually([&] { return waiters(server) == 1; }));
        m.unlock();
        next.join();
        boot_clock::time_point granted;
        sleeper again{[&] {
            m.lock();
            granted = boot_clock::now();
            m.unlock();
        }};
        CHECK(eventually([&] { return waiters(server) == 1; }));
        auto const released = boot_clock::now();
        other.unlock();
        again.join();
        return granted - released >= 20ms;
    };
    CHECK(eventually(leaves_it_free));
}

TEST_CASE("a handoff between threads of a process asks no server")
{
    redis_server server;
    client redis{server.url(), unhurried()};
    mutex m{redis, "orders", {.ttl = 1h, .max_local_handoffs = 63}};
    m.lock();
    auto const before = lock_requests(server);
    std::atomic<int> sections{0};
    std::vector<std::unique_ptr<sleeper>> all;
    std::vector<std::unique_ptr<mutex>> locks;
    for (int i = 0; i < 8; ++i) {
        auto& mine = locks.emplace_back(
            std::make_unique<mutex>(redis, "orders", holdfast::lock_options{.ttl = 1h, .max_local_handoffs = 63}));
        all.push_back(std::make_unique<sleeper>([&sections, &mine = *mine] {
            mine.lock();
            ++sections;
            mine.unlock();
        }));
    }
    for (auto const& one : all) CHECK(one->sleeps());  // in line
    m.unlock();
    all.clear();
    CHECK(sections == 8);
    CHECK(lock_requests(server) - before <= 1 + 2 * 3);  // the last release, and a few who slept elsewhere on their way
}

TEST_CASE("the place in the queue of a thread that gives up is that of the next one of its client, if it was there")
{
    redis_server server;
    client here{server.url(), unhurried()};
    client there{server.url(), unhurried()};
    mutex held{there, "orders", {.ttl = 1h}};
    held.lock();
    auto const queue = [&] { return holdfast::test::queue_of(server); };
    mutex first{here, "orders", {.ttl = 1h}};
    std::stop_source stop;
    sleeper gives_up{[&] { return first.lock(stop.get_token()); }};
    CHECK(eventually([&] { return queue().size() == 1; }));
    auto const left = queue().front();
    mutex second{here, "orders", {.ttl = 1h}};
    sleeper next{[&] { std::scoped_lock const hold{second}; }};
    CHECK(next.sleeps());
    client elsewhere{server.url(), unhurried()};
    mutex third{elsewhere, "orders", {.ttl = 1h}};
    sleeper later{[&] { std::scoped_lock const hold{third}; }};
    CHECK(eventually([&] { return queue().size() == 2; }));
    auto const other = queue().back();
    mutex fourth{here, "orders", {.ttl = 1h}};
    sleeper last{[&] { std::scoped_lock const hold{fourth}; }};
    CHECK(last.sleeps());
    stop.request_stop();
    CHECK_FALSE(gives_up.join());
    // Each look of a waiter says its place anew.
    CHECK(eventually([&] {
        auto const now = queue();
        return now.size() == 2 && now.front() != left && now.back() == other;
    }));
    held.unlock();
    next.join();
    later.join();
    last.join();
}

TEST_CASE("without handoffs every section asks the server")
{
    redis_server server;
    client redis{server.url(), unhurried()};
    mutex warm{redis, "invoices"};
    warm.lock();
    warm.unlock();
    auto const before = lock_requests(server);
    std::vector<std::jthread> all;
    for (int i = 0; i < 4; ++i)
        all.emplace_back([&] {
            mutex mine{redis, "orders", {.ttl = 1h, .max_local_handoffs = 0}};
            for (int n = 0; n < 5; ++n) {
                mine.lock();
                mine.unlock();
            }
        });
    all.clear();
    CHECK(lock_requests(server) - before >= 40);
}

#ifndef HOLDFAST_SANITIZED  // a sanitizer has a thread of its own, which wakes
TEST_CASE("a process that has a lock or waits for one wakes for renewals and looks and for nothing else")
{
    constexpr int for_each = 4;  // its timer, the answer, and as many for threads that meet
    constexpr int beside = 8;
    constexpr std::chrono::milliseconds ttl = 3s;
    redis_server server;
    server.command({"SET", "orders", "of another client", "PX", "3600000"});
    holdfast::test::shared<rest> const holds;
    holdfast::test::shared<rest> const waits;
    auto holder = holdfast::test::child::fork([&] {
        client redis{server.url(), {.operation_timeout = ttl / 2, .connect_timeout = 1min}};
        mutex m{redis, "stock", {.ttl = ttl}};
        m.lock();
        return holds->go() ? 0 : 1;
    });
    auto waiter = holdfast::test::child::fork([&] {
        client redis{server.url(), unhurried()};
        mutex m{redis, "orders", patient()};
        std::stop_source stop;
        std::jthread const waiting{[&] { static_cast<void>(m.lock(stop.get_token())); }};
        bool const rested = waits->go();
        stop.request_stop();
        return rested ? 0 : 1;
    });
    CHECK(eventually([&] { return holdfast::test::exists(server, "stock") && waiters(server) == 1; }, 5min));
    holds->begins = waits->begins = true;
    CHECK(holder.wait() == 0);
    CHECK(waiter.wait() == 0);
    CAPTURE(holds->sleeps.load(), holds->took.load(), waits->sleeps.load(), waits->took.load());
    auto const renewals = 1 + boot_clock::duration{holds->took} / (ttl / 3 - ttl / 64);
    CHECK(holds->sleeps <= for_each * renewals + beside);
    auto const looks = 1 + looks_within(boot_clock::duration{waits->took});
    CHECK(waits->sleeps <= for_each * looks + beside);
    CHECK(holds->sleeps > 0);
}
#endif

TEST_CASE("an uncontended lock costs two requests and no subscription", "[lesson-12]")
{
    redis_server server;
    client redis{server.url(), unhurried()};
    mutex m{redis, "orders"};
    for (int i = 0; i < 3; ++i) {
        m.lock();
        m.unlock();
    }
    server.command({"CONFIG", "RESETSTAT"});
    for (int i = 0; i < 10; ++i) {
        m.lock();
        m.unlock();
    }
    CHECK(lock_requests(server) == 20);
    CHECK(holdfast::test::calls(server, "eval") == 0);
    CHECK(holdfast::test::calls(server, "subscribe") == 0);
}
