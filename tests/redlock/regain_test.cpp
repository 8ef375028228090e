// SPDX-License-Identifier: MIT
//
// A lock that is held for long has its votes given back by masters that have lost them, when it is renewed: so it
// outlives masters that are started again one after another.
#include "masters.hpp"
#include "redis/observed.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/redis_server.hpp"

#include <chrono>
#include <cstddef>
#include <future>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::redlock::masters;
using holdfast::redlock::mutex;
using holdfast::test::containing;
using holdfast::test::eventually;
using holdfast::test::five_masters;
using holdfast::test::proxied_masters;
using holdfast::test::redis_fleet;

namespace {

/// Effects: extends `m` until all masters have its key. Returns: whether they did.
[[nodiscard]] bool regained(redis_fleet& servers, mutex& m, std::string const& key)
{
    return eventually(
        [&] {
            std::error_code ec;
            m.extend(1h, ec);
            return eventually([&] { return holdfast::test::copies(servers, key) == servers.size(); }, 500ms);
        },
        5min);
}

}  // namespace

TEST_CASE("masters that have lost a lock give it back when it is extended, and count when others lose it")
{
    five_masters five;
    mutex m{five.client, "orders", {.ttl = 30min, .renew = false, .fencing = GENERATE(true, false)}};
    REQUIRE(five.lock_on_all(m, "orders"));
    auto const token = five.servers[4].command({"GET", "orders"}).text;
    for (auto const lost : {0U, 2U, 4U, 1U}) {
        for (auto const one : {lost, (lost + 1) % 5}) five.servers[one].command({"FLUSHALL"});
        CHECK(regained(five.servers, m, "orders"));
    }
    for (auto& server : five.servers) {
        CHECK(server.command({"GET", "orders"}).text == token);
        CHECK(server.command({"PTTL", "orders"}).integer > 1'900'000);
    }
    m.unlock();
    CHECK(eventually([&] { return five.copies("orders") == 0; }));
}

TEST_CASE("a lock that is renewed outlives masters that are started again one after another, without their memory")
{
    five_masters five;
    mutex m{five.client, "orders", {.ttl = 20s, .unavailable_after = 5min}};
    REQUIRE(five.lock_on_all(m, "orders"));
    auto const lease = m.lease();
    CHECK(regained(five.servers, m, "orders"));  // for an hour from now on
    for (std::size_t i = 0; i < 5; ++i) {
        five.servers.kill(i);
        five.servers.restart(i);
        CHECK(regained(five.servers, m, "orders"));
    }
    CHECK_FALSE(lease.lost_token().stop_requested());
    m.unlock();
    CHECK(eventually([&] { return five.copies("orders") == 0; }));
}

TEST_CASE("a master that was away when a lock was taken votes for it when it is extended")
{
    five_masters five;
    five.servers.kill(3);
    mutex m{five.client, "orders", {.ttl = 1h, .renew = false}};
    REQUIRE(m.try_lock_for(30s));
    five.servers.restart(3);
    CHECK(regained(five.servers, m, "orders"));
    m.unlock();
    CHECK(eventually([&] { return five.copies("orders") == 0; }));
}

TEST_CASE("a master does not vote for a lock that another has there, nor for one that a majority has lost")
{
    five_masters five;
    mutex m{five.client, "orders", {.ttl = 1h, .renew = false}};
    REQUIRE(five.lock_on_all(m, "orders"));
    for (std::size_t i : {0U, 1U}) five.servers[i].command({"SET", "orders", "theirs"});
    std::error_code ec;
    for (int i = 0; i < 10; ++i) m.extend(1h, ec);
    for (std::size_t i : {0U, 1U}) CHECK(five.servers[i].command({"GET", "orders"}).text == "theirs");
    for (std::size_t i : {0U, 1U}) five.servers[i].command({"DEL", "orders"});
    CHECK(regained(five.servers, m, "orders"));
    // What answered a moment ago may not have been read, and so counts as lost already: these three were the only
    // majority before.
    for (std::size_t i : {2U, 3U, 4U}) five.servers[i].command({"DEL", "orders"});
    CHECK(eventually([&] {
        m.extend(1h, ec);
        return ec == errc::lease_lost;
    }));
}

TEST_CASE("a vote is not given back where a roll-back that went over a connection that broke may still arrive")
{
    constexpr auto node_timeout = 10s;
    proxied_masters three{node_timeout};
    auto& servers = three.servers;
    auto& ways = three.ways;
    REQUIRE(eventually([&] { return holdfast::test::copies(servers, "invoices") == 0; }));
    mutex m{three.client, "orders", {.ttl = 1h, .renew = false, .fencing = false}};
    ways[1].hold(containing("orders"));
    ways[2].swallow_next_reply({.matches = containing("orders")});
    ways[2].hold([first = true](std::string_view request) mutable {
        return containing(holdfast::test::of_release)(request) && std::exchange(first, false);
    });
    auto attempt = std::async(std::launch::async, [&] { return m.try_lock(); });
    CHECK(eventually([&] { return ways[2].held() == 1; }));  // the roll-back, with the second acquire behind it
    ways[1].let_go();
    REQUIRE(attempt.get());
    std::this_thread::sleep_for(node_timeout + 100ms);  // the connection is given up, and not what is under way over it
    auto const extend = [&] {
        std::error_code ec;
        m.extend(1h, ec);
    };
    REQUIRE(eventually([&] {  // the roll-back goes over the next connection, too
        extend();
        return servers[2].command({"EXISTS", "orders"}).integer == 0;
    }));
    for (int i = 0; i < 5; ++i) {
        auto const asked = ways[2].requests();
        CHECK(eventually([&] {
            extend();
            return ways[2].requests() > asked;
        }));
        std::this_thread::sleep_for(50ms);  // its answer comes, which the next one goes by
        CHECK(servers[2].command({"EXISTS", "orders"}).integer == 0);
    }
    ways[2].let_go();
    m.unlock();
    CHECK(eventually([&] { return holdfast::test::copies(servers, "orders") == 0; }));
}

TEST_CASE("what is asked for behind an unlock stays on no master")
{
    proxied_masters three;
    auto& servers = three.servers;
    auto& ways = three.ways;
    mutex m{three.client, "orders", {.ttl = 1h, .renew = false}};
    REQUIRE(holdfast::test::lock_on_all(servers, m, "orders"));
    servers[2].command({"SET", "orders", "theirs"});
    std::error_code ec;
    for (int i = 0; i < 5; ++i) {
        m.extend(1h, ec);
        std::this_thread::sleep_for(20ms);  // its no comes, and is read by the next one
    }
    servers[2].command({"DEL", "orders"});
    ways[2].cut_all();
    ways[2].hold();
    CHECK(eventually([&] {  // it is seen that the connection broke, and the next one waits for its greeting
        three.probe.lock();
        three.probe.unlock();
        return ways[2].held() > 0;
    }));
    ways[1].hold(containing("orders"));
    auto extending = std::async(std::launch::async, [&] {
        std::error_code why;
        m.extend(1h, why);
    });
    CHECK(eventually([&] { return ways[1].held() > 0; }));
    auto unlocking = std::async(std::launch::async, [&] { m.unlock(); });
    CHECK(eventually([&] { return servers[0].command({"EXISTS", "orders"}).integer == 0; }));
    auto const asked = ways[2].requests();
    ways[2].let_go();
    CHECK(eventually([&] { return ways[2].requests() > asked; }));  // the release; the extension was cancelled
    ways[1].let_go();
    extending.get();
    unlocking.get();
    CHECK(eventually([&] { return holdfast::test::copies(servers, "orders") == 0; }));
    REQUIRE(holdfast::test::lock_on_all(servers, m, "orders"));
}

TEST_CASE("a master that has just been started votes for no lock that is extended until the guard has passed",
          "[alone]")
{
    constexpr auto guard = 30s;
    five_masters five;
    masters cautious{five.servers.urls(), {.node_timeout = 5s, .connect_timeout = 1min, .restart_guard = guard}};
    mutex m{cautious, "orders", {.ttl = guard, .unavailable_after = 5min}};
    m.lock();  // when all have run for long enough
    m.unlock();
    REQUIRE(holdfast::test::lock_on_all(five.servers, m, "orders", 5min));
    five.servers.kill(2);
    auto const before = holdfast::boot_clock::now();
    five.servers.restart(2);
    CHECK(eventually(
        [&] {
            std::error_code ec;
            m.extend(guard, ec);
            std::this_thread::sleep_for(50ms);
            return five.servers[2].command({"EXISTS", "orders"}).integer == 1;
        },
        5min));
    CHECK(holdfast::boot_clock::now() - before >= guard);
    CHECK_FALSE(m.lease().lost_token().stop_requested());
}
