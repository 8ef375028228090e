// SPDX-License-Identifier: MIT
//
// A server that dies, comes back, forgets or hangs.
#include "conformance/sleeper.hpp"
#include "observed.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/process.hpp"
#include "support/proxy.hpp"
#include "support/refused_memory.hpp"

#include <holdfast/redis.hpp>

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::errc;
using holdfast::redis::client;
using holdfast::redis::mutex;
using holdfast::test::code_of;
using holdfast::test::eventually;
using holdfast::test::exists;
using holdfast::test::lock_requests;
using holdfast::test::proxy;
using holdfast::test::redis_server;
using holdfast::test::unhurried;

namespace {

constexpr auto slack = 5s;

/// Returns: how long `f` takes: the shortest of a few tries, of which one below `limit` is the last, as a busy machine
/// stands still at times.
template <class F>
boot_clock::duration shortest(boot_clock::duration limit, F f)
{
    auto least = boot_clock::duration::max();
    for (int i = 0; i < 3 && least >= limit; ++i) {
        auto const begun = boot_clock::now();
        f();
        least = std::min(least, boot_clock::now() - begun);
    }
    return least;
}

}  // namespace

TEST_CASE("where nobody listens a lock is unavailable by its deadline")
{
    redis_server server;
    client redis{server.url()};
    server.kill();
    mutex m{redis, "orders", {.unavailable_after = 200ms}};

    CHECK(code_of([&] { (void)m.try_lock(); }) == errc::unavailable);
    auto const took =
        shortest(300ms + slack, [&] { CHECK(code_of([&] { (void)m.try_lock_for(300ms); }) == errc::unavailable); });
    CHECK(took >= 300ms);
    CHECK(took < 300ms + slack);
    CHECK(shortest(200ms + slack, [&] { CHECK(code_of([&] { m.lock(); }) == errc::unavailable); }) < 200ms + slack);
}

TEST_CASE("who waits behind one who finds no server is told of that, too")
{
    redis_server server;
    client redis{server.url()};
    mutex before{redis, "orders", {.unavailable_after = 1min}};
    mutex behind{redis, "orders"};
    server.kill();
    std::stop_source stop;
    holdfast::test::sleeper waits{[&] { return before.lock(stop.get_token()); }};
    CHECK(waits.sleeps());
    CHECK(code_of([&] { (void)behind.try_lock_for(1s); }) == errc::unavailable);
    CHECK(code_of([&] { (void)behind.try_lock(); }) == errc::unavailable);
    server.restart();
    CHECK(eventually([&] { return before.lease().still_held(); }));
    CHECK_FALSE(behind.try_lock_for(10ms));
    stop.request_stop();
    CHECK(waits.join());
}

TEST_CASE("who waits behind one who waits for another client is not told of an outage that is over")
{
    redis_server server;
    client redis{server.url()};
    client elsewhere{server.url(), unhurried()};
    mutex before{redis, "orders", {.unavailable_after = 1min}};
    mutex behind{redis, "orders"};
    mutex there{elsewhere, "orders", {.ttl = 1h}};
    server.kill();
    CHECK(code_of([&] { (void)behind.try_lock_for(100ms); }) == errc::unavailable);
    server.restart();
    CHECK(there.try_lock_for(20s));
    std::stop_source stop;
    holdfast::test::sleeper waits{[&] { return before.lock(stop.get_token()); }};
    CHECK(waits.sleeps());
    CHECK(eventually([&] { return holdfast::test::waiters(server) == 1; }));  // it has been told who has it
    CHECK_FALSE(behind.try_lock());
    CHECK_FALSE(behind.try_lock_for(10ms));
    stop.request_stop();
    CHECK_FALSE(waits.join());
}

TEST_CASE("a server that accepts and never answers is unavailable by the deadline and one operation timeout")
{
    redis_server server;
    proxy way{server.port()};
    way.blackhole();
    client redis{way.url(), {.operation_timeout = 100ms}};
    mutex m{redis, "orders", {.unavailable_after = 200ms}};
    std::string what;

    CHECK(code_of([&] { (void)m.try_lock(); }, &what) == errc::unavailable);
    CHECK_THAT(what, holdfast::test::contains(std::to_string(way.port())));
    CHECK(shortest(400ms + slack, [&] { CHECK(code_of([&] { (void)m.try_lock_for(300ms); }) == errc::unavailable); }) <
          400ms + slack);
    CHECK(shortest(300ms + slack, [&] { CHECK(code_of([&] { m.lock(); }) == errc::unavailable); }) < 300ms + slack);

    way.pass();
    CHECK(m.try_lock_for(20s));
}

TEST_CASE("an unlock that gets no answer ends after one operation timeout and says so", "[lesson-6][lesson-17]")
{
    redis_server server;
    proxy way{server.port()};
    client redis{way.url(), {.operation_timeout = 100ms}};
    mutex m{redis, "orders", {.ttl = 1h, .unavailable_after = 1min}};
    auto took = boot_clock::duration::max();
    for (int i = 0; i < 3 && took >= 100ms + slack; ++i) {
        m.lock();
        way.blackhole();
        std::error_code ec;
        took = shortest(boot_clock::duration::max(), [&] { m.unlock(ec); });
        CHECK(ec == errc::outcome_unknown);
        way.pass();
    }
    CHECK(took < 100ms + slack);
    mutex next{redis, "orders"};
    CHECK(eventually([&] {
        (void)code_of([&] { (void)next.try_lock_for(200ms); });  // what reaches the server again repeats the release
        return next.lease().still_held() || !exists(server, "orders");
    }));
}

TEST_CASE("an unlock that finds no server is repeated when it is back, also if the client is not used again")
{
    redis_server server;
    client redis{server.url(), {.operation_timeout = 2s, .connections = 1}};
    mutex m{redis, "orders", {.ttl = 1h}};
    m.lock();
    CHECK(exists(server, "orders"));
    server.command({"SAVE"});
    server.kill();
    std::error_code ec;
    m.unlock(ec);
    CHECK(ec);
    server.restart();
    CHECK(exists(server, "holdfast:fence:{orders}"));  // it has its memory
    CHECK(eventually([&] { return !exists(server, "orders"); }));
}

TEST_CASE("an unlock whose connection is refused is repeated, also if the client is not used again")
{
    redis_server server;
    proxy way{server.port()};
    client redis{way.url(), {.operation_timeout = 2s, .connections = 1}};
    mutex m{redis, "orders", {.ttl = 1h}};
    mutex other{redis, "invoices", {.unavailable_after = 1min}};
    m.lock();
    way.refuse();
    CHECK(code_of([&] { (void)other.try_lock(); }) == errc::unavailable);  // it is known to be down
    std::error_code ec;
    m.unlock(ec);
    CHECK(ec);
    CHECK(exists(server, "orders"));
    way.pass();
    CHECK(eventually([&] { return !exists(server, "orders"); }));
}

TEST_CASE("after the server was restarted while idle the next lock works")
{
    redis_server server;
    client redis{server.url(), unhurried()};
    mutex m{redis, "orders"};
    m.lock();
    auto const token = m.lease().fencing_token();
    m.unlock();
    server.restart();
    CHECK(m.try_lock());
    CHECK(m.lease().fencing_token() > token);
    m.unlock();
    CHECK_FALSE(exists(server, "orders"));
}

TEST_CASE("a server restarted empty while the lock is held is found out by the renewal")
{
    redis_server server;
    std::atomic<int> told{0};
    client redis{server.url(), {.operation_timeout = 1500ms}};
    mutex m{redis, "orders", {.ttl = 3s, .on_error = [&](holdfast::error const& e) {
                                  told += e.code() == errc::lease_lost ? 1 : 0;
                              }}};
    m.lock();
    auto const lease = m.lease();
    server.restart();
    CHECK(eventually([&] { return lease.lost_token().stop_requested(); }));
    CHECK_FALSE(lease.still_held());
    CHECK(eventually([&] { return told == 1; }));
    std::error_code ec;
    m.unlock(ec);
    CHECK(ec == errc::lease_lost);
    m.lock();
    CHECK(m.lease().fencing_token() > lease.fencing_token());
}

TEST_CASE("the loss of a lease is announced although the server is gone for good", "[lesson-19]")
{
    redis_server server;
    std::atomic<int> failures{0};
    std::atomic<int> losses{0};
    client redis{server.url(), {.operation_timeout = 1500ms}};
    auto const count = [&](holdfast::error const& e) { ++(e.code() == errc::lease_lost ? losses : failures); };
    constexpr auto ttl = 12s;  // long enough for a keeper that is late to try a renewal
    mutex m{redis, "orders", {.ttl = ttl, .on_error = count}};
    m.lock();
    auto const begun = boot_clock::now();
    auto const lease = m.lease();
    server.kill();
    CHECK(eventually([&] { return lease.lost_token().stop_requested(); }, 1min));
    CHECK(boot_clock::now() - begun < ttl + slack);
    CHECK(eventually([&] { return losses == 1; }));
    CHECK(failures > 0);
    CHECK(failures < 100);
}

TEST_CASE("a renewal that failed is tried again in time", "[lesson-9]")
{
    redis_server server;
    proxy way{server.port()};
    client redis{way.url(), unhurried()};
    mutex m{redis, "orders", {.ttl = 20s}};
    m.lock();
    auto const lease = m.lease();
    auto const until = lease.expires_at();
    way.drop_next_request({.matches = holdfast::test::containing("EVALSHA"), .times = 2});
    CHECK(eventually([&] { return way.struck() == 2; }));
    CHECK(eventually([&] { return lease.expires_at() != until; }));  // renewed, or lost
    CHECK(lease.still_held());
}

TEST_CASE("what is unlocked is renewed no more", "[lesson-8]")
{
    redis_server server;
    client redis{server.url(), {.operation_timeout = 5s, .connect_timeout = 1min}};
    mutex m{redis, "orders", {.ttl = 10s}};
    mutex warm{redis, "orders", {.ttl = 1h}};
    warm.lock();
    warm.extend(1h);
    warm.unlock();          // the server knows all scripts
    CHECK(eventually([&] {  // once more where the lease is over before it was to be renewed
        m.lock();
        auto const lease = m.lease();
        auto const locked = lock_requests(server);
        if (eventually([&] { return lock_requests(server) > locked || !lease.still_held(); }) && lease.still_held())
            return true;
        m.unlock();
        return false;
    }));
    m.unlock();
    auto const unlocked = lock_requests(server);
    std::this_thread::sleep_for(7s);  // for two renewals
    CHECK(lock_requests(server) == unlocked);
    CHECK_FALSE(exists(server, "orders"));
}

TEST_CASE("flushed scripts are loaded again without anybody noticing")
{
    redis_server server;
    client redis{server.url(), {.operation_timeout = 6s, .connect_timeout = 1min}};
    for (bool const fencing : {true, false}) {
        mutex m{redis, "orders", {.ttl = 12s, .fencing = fencing}};
        m.lock();
        auto const lease = m.lease();
        server.command({"SCRIPT", "FLUSH"});
        m.extend(12s);
        server.command({"SCRIPT", "FLUSH"});
        auto const flushed = lease.expires_at();
        CHECK(eventually([&] { return lease.expires_at() != flushed; }));  // a renewal, or the loss
        CHECK(lease.still_held());
        server.command({"SCRIPT", "FLUSH"});
        std::error_code ec;
        m.unlock(ec);
        CHECK_FALSE(ec);
        CHECK_FALSE(exists(server, "orders"));
    }
}

TEST_CASE("after FLUSHALL the loss is announced, an unlock is harmless and the next lock works")
{
    redis_server server;
    client redis{server.url(), {.operation_timeout = 1500ms}};
    client elsewhere{server.url(), unhurried()};
    mutex m{redis, "orders", {.ttl = 3s}};
    mutex rival{elsewhere, "orders"};
    m.lock();
    auto const lease = m.lease();
    server.command({"FLUSHALL"});
    CHECK(rival.try_lock());
    CHECK(eventually([&] { return lease.lost_token().stop_requested(); }));
    m.unlock();
    CHECK(rival.lease().still_held());
    CHECK(exists(server, "orders"));
    CHECK(rival.lease().fencing_token() > lease.fencing_token());
    rival.unlock();
    CHECK(m.try_lock_for(1min));
}

TEST_CASE("a waiter whose server is restarted gets the lock")
{
    redis_server server;
    client redis{server.url(), unhurried()};
    client elsewhere{server.url(), unhurried()};
    mutex m{redis, "orders", {.ttl = 1h}};
    mutex waiting{elsewhere, "orders", {.unavailable_after = 1min}};
    m.lock();
    std::jthread waiter{[&] { waiting.lock(); }};
    CHECK(eventually([&] { return holdfast::test::waiters(server) == 1; }));
    server.restart();
    waiter.join();
    CHECK(waiting.lease().still_held());
}

TEST_CASE("a waiter whose connections were cut is woken by a release all the same", "[lesson-11]")
{
    redis_server server;
    proxy way{server.port()};
    client redis{server.url(), unhurried()};
    client elsewhere{way.url(), unhurried()};
    mutex m{redis, "orders", {.ttl = 1h}};
    mutex waiting{elsewhere, "orders", {.ttl = 1h, .retry = {.most = 1h}}};
    m.lock();
    std::atomic<bool> done{false};
    std::jthread waiter{[&] { done = waiting.try_lock_for(60s); }};
    CHECK(eventually([&] { return holdfast::test::waiters(server) == 1; }));
    way.cut_all();
    CHECK(eventually([&] { return holdfast::test::waiters(server) == 1; }));
    m.unlock();
    CHECK(eventually([&] { return done.load(); }));
}

TEST_CASE("a lock whose master becomes a replica is at risk, then lost in time, and its unlock says so")
{
    redis_server server;
    client redis{server.url(), {.operation_timeout = 3s, .connect_timeout = 1min}};
    mutex m{redis, "orders", {.ttl = 6s}};
    bool const in_time = GENERATE(true, false);
    m.lock();
    auto const lease = m.lease();
    auto const until = lease.expires_at();
    auto const warned = lease.at_risk();
    server.command({"REPLICAOF", "127.0.0.1", "1"});
    CHECK(eventually([&] { return warned.stop_requested(); }));
    std::error_code ec;
    if (in_time) {  // while it may still be held
        m.unlock(ec);
        CHECK((ec == holdfast::redis::errc::read_only || ec == errc::lease_lost));
        return;
    }
    CHECK(eventually([&] { return lease.lost_token().stop_requested(); }));
    CHECK(boot_clock::now() < until + slack);
    CHECK_FALSE(lease.still_held());
    m.unlock(ec);
    CHECK(ec == errc::lease_lost);
}

TEST_CASE("a lock that another user deletes, or the server evicts, is told as lost with the next renewal")
{
    redis_server server;
    client redis{server.url(), {.operation_timeout = 3s, .connect_timeout = 1min}};
    mutex m{redis, "orders", {.ttl = 6s}};
    m.lock();
    auto const lease = m.lease();
    auto const until = lease.expires_at();
    if (GENERATE(true, false)) {
        server.command({"DEL", "orders"});
    } else {
        server.command({"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"});
        server.command({"CONFIG", "SET", "maxmemory", "1"});
        CHECK(eventually([&] { return !exists(server, "orders"); }));
        server.command({"CONFIG", "SET", "maxmemory", "0"});
    }
    CHECK(eventually([&] { return lease.lost_token().stop_requested(); }));
    CHECK(boot_clock::now() < until + slack);
    CHECK_FALSE(lease.still_held());
    std::error_code ec;
    m.unlock(ec);
    CHECK(ec == errc::lease_lost);
}

#ifndef HOLDFAST_SANITIZED  // UBSan looks at memory by a pipe
TEST_CASE("a process without free descriptors cannot ask a server, and can when it has some")
{
    redis_server server;
    auto born = holdfast::test::child::fork([&] {
        client redis{server.url(), unhurried()};
        mutex m{redis, "orders", {.ttl = 1h, .unavailable_after = 200ms}};
        ::rlimit limit{};
        if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1;
        auto const usual = std::exchange(limit.rlim_cur, 0);
        if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return 2;
        if (code_of([&] { m.lock(); }) != errc::unavailable) return 3;
        limit.rlim_cur = usual;
        if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return 4;
        return m.try_lock_for(1min) ? 0 : 5;
    });
    CHECK(born.wait_for(5min) == 0);
}
#endif
