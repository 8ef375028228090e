// SPDX-License-Identifier: MIT
//
// The connections of one client, over which its locks are spread.
#include "observed.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/proxy.hpp"

#include <holdfast/adapters/multi_mutex.hpp>
#include <holdfast/redis.hpp>
#include <holdfast/redis/client_pool.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <future>
#include <memory>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using holdfast::redis::client;
using holdfast::redis::mutex;
using holdfast::test::code_of;
using holdfast::test::containing;
using holdfast::test::eventually;
using holdfast::test::proxy;
using holdfast::test::redis_server;
using holdfast::test::unhurried;

TEST_CASE("a client makes no more connections for commands than it was told to")
{
    auto const [told, made] = GENERATE(std::pair{1U, 1}, std::pair{3U, 3}, std::pair{4U, 4});
    redis_server server;
    proxy way{server.port()};
    client redis{way.url(), {.operation_timeout = 10s, .connect_timeout = 1min, .connections = told}};
    for (int i = 0; i < 200; ++i) {
        mutex m{redis, "orders/" + std::to_string(i)};
        REQUIRE(m.try_lock());
        m.unlock();
    }
    CHECK(way.connections() == made);
}

TEST_CASE("locks are dealt out to the connections in turn as they are first used")
{
    redis_server server;
    proxy way{server.port()};
    client redis{way.url(), {.operation_timeout = 10s, .connect_timeout = 1min, .connections = 4}};
    std::deque<mutex> made;  // and used in another order
    for (int i = 0; i < 8; ++i) made.emplace_back(redis, "orders/" + std::to_string(i));
    for (int used = 0; used < 4; ++used) {
        for (int times = 0; times < 3; ++times) {
            REQUIRE(made[static_cast<std::size_t>(2 * used)].try_lock_for(1min));
            made[static_cast<std::size_t>(2 * used)].unlock();
            CHECK(way.connections() == used + 1);
        }
    }
}

TEST_CASE("a name keeps to its connection also where its keys were forgotten meanwhile")
{
    redis_server server;
    proxy way{server.port()};
    client redis{way.url(), {.operation_timeout = 10s, .connect_timeout = 1min, .connections = 4}};
    std::string const name = "orders/0";
    std::string other;  // whose keys take the place of those
    for (int i = 1; other.empty(); ++i)
        if (auto const one = "orders/" + std::to_string(i);
            holdfast::redis::client_pool::place_of(one) == holdfast::redis::client_pool::place_of(name))
            other = one;
    for (int times = 0; times < 4; ++times)
        for (auto const& used : {name, other}) {
            mutex m{redis, used};
            REQUIRE(m.try_lock_for(1min));
            m.unlock();
        }
    CHECK(way.connections() == 1);
}

TEST_CASE(
    "a connection on which releases are to be reported and nothing is answered is given up, and the next one asked")
{
    redis_server server;
    proxy way{server.port()};
    client there{server.url(), unhurried()};
    client redis{way.url(), {.operation_timeout = 10s, .connect_timeout = 300ms, .connections = 1}};
    mutex held{there, "orders", {.ttl = 1h}};
    mutex m{redis, "orders"};
    REQUIRE(held.try_lock());
    way.hold(containing("SUBSCRIBE"));
    // Each that waits asks, and asks no more when it gives up.
    CHECK(eventually([&] {
        (void)code_of([&] { (void)m.try_lock_for(5ms); });
        return way.connections() > 4;
    }));
    way.let_go();
    std::jthread waiter{[&] { m.lock(); }};
    CHECK(eventually([&] { return holdfast::test::waiters(server) == 1; }));
    held.unlock();
    waiter.join();
    m.unlock();
}

TEST_CASE("those who wait for many locks share the connections that report releases", "[lesson-12]")
{
    auto const told = GENERATE(1U, 3U);
    redis_server server;
    proxy way{server.port()};
    client there{server.url(), unhurried()};
    client redis{way.url(), {.operation_timeout = 10s, .connect_timeout = 1min, .connections = told}};
    std::deque<mutex> held;
    std::deque<mutex> wanted;
    std::vector<std::jthread> waiters;
    for (int i = 0; i < 40; ++i) {
        auto const name = "orders/" + std::to_string(i);
        REQUIRE(held.emplace_back(there, name).try_lock());
        auto& mine = wanted.emplace_back(redis, name);
        waiters.emplace_back([&mine](std::stop_token const& stop) { (void)mine.lock(stop); });
    }
    CHECK(eventually([&] {
        long in_line = 0;
        for (int i = 0; i < 40; ++i) in_line += holdfast::test::waiters(server, "orders/" + std::to_string(i));
        return in_line == 40;
    }));
    CHECK(holdfast::test::subscriptions(server) == static_cast<long>(told));
    CHECK(way.connections() <= static_cast<int>(2 * told));
    waiters.clear();
    CHECK(eventually([&] { return server.command({"KEYS", "holdfast:queue:*"}).elements.empty(); }));
}

TEST_CASE("all objects of one name share a connection, and nobody makes one before it is needed")
{
    redis_server server;
    proxy way{server.port()};
    client redis{way.url(), unhurried()};
    CHECK(way.connections() == 0);
    for (int i = 0; i < 20; ++i) {
        mutex m{redis, "orders"};
        REQUIRE(m.try_lock_for(1min));
        m.unlock();
    }
    CHECK(way.connections() == 1);
}

TEST_CASE("a server that does not answer keeps locks on no connection waiting for longer than its time")
{
    redis_server server;
    proxy way{server.port()};
    client redis{way.url(), {.operation_timeout = 1s}};
    std::deque<mutex> locks;
    for (int i = 0; i < 16; ++i) REQUIRE(locks.emplace_back(redis, "orders/" + std::to_string(i)).try_lock_for(1min));
    for (auto& m : locks) m.unlock();
    way.blackhole();
    std::atomic<int> refused{0};
    auto const begun = holdfast::boot_clock::now();
    std::vector<std::jthread> threads;
    for (auto& m : locks) {
        threads.emplace_back([&] {
            std::error_code const why = holdfast::test::code_of([&] { (void)m.try_lock(); });
            if (why == holdfast::errc::unavailable) ++refused;
        });
    }
    threads.clear();
    CHECK(refused == 16);
    CHECK(holdfast::boot_clock::now() - begun < 15s);  // one after the other they would take 16
    way.pass();
    way.cut_all();
    for (auto& m : locks) {
        CHECK(eventually([&] {
            try {
                return m.try_lock();
            } catch (holdfast::error const&) {
                return false;
            }
        }));
        m.unlock();
    }
}

TEST_CASE("a client that is ended by the function that is told of its lock has ended when that goes on")
{
    redis_server server;
    auto redis = std::make_unique<client>(server.url(), unhurried());
    auto m = std::make_unique<mutex>(*redis, "orders", holdfast::lock_options{.ttl = 1h});
    auto stock = std::make_unique<mutex>(*redis, "stock", holdfast::lock_options{.ttl = 1h});
    auto both = std::make_unique<holdfast::multi_mutex>(*m, *stock);
    std::promise<bool> ended;
    auto const end = [&](std::error_code ec) {
        both.reset();
        m.reset();
        stock.reset();
        redis.reset();
        auto const left = [&] {
            auto const all = server.command({"CLIENT", "LIST"}).text;
            return std::count(all.begin(), all.end(), '\n');
        };
        ended.set_value(!ec && eventually([&] { return left() == 1; }));  // the one that asks
    };
    bool const several = GENERATE(false, true);
    bool const unlocks = GENERATE(false, true);
    INFO((several ? "several, " : "one, ") << (unlocks ? "unlock" : "lock"));
    auto const begin = [&](auto& one) {
        if (!unlocks) return one.async_lock(end);
        one.lock();
        one.async_unlock(end);
    };
    several ? begin(*both) : begin(*m);
    CHECK(ended.get_future().get());
}
