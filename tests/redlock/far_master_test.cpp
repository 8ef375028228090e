// SPDX-License-Identifier: MIT
//
// A master that always answers when the others have decided: it is connected to, and learns the scripts, all the same,
// so it counts when another fails.
#include "masters.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/proxy.hpp"
#include "support/redis_server.hpp"

#include <holdfast/redlock.hpp>

#include <chrono>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using holdfast::redlock::masters;
using holdfast::redlock::masters_options;
using holdfast::redlock::mutex;
using holdfast::test::eventually;
using holdfast::test::proxy;
using holdfast::test::redis_fleet;

namespace {

/// Two masters nearby and one behind a proxy that delays, whose answers always come last.
struct far_master {
    redis_fleet servers{3};
    proxy way{servers[2].port()};
    masters client;

    explicit far_master(masters_options options = {.node_timeout = 10s, .connect_timeout = 1min, .restart_guard = 0ms},
                        std::chrono::milliseconds each_way = 50ms)
        : client{delayed(each_way), options}
    {
    }

    std::vector<std::string> delayed(std::chrono::milliseconds each_way)
    {
        way.delay(each_way, each_way);
        return {servers[0].url(), servers[1].url(), way.url()};
    }

    [[nodiscard]] bool holds() { return servers[2].command({"EXISTS", "orders"}).integer == 1; }
};

}  // namespace

TEST_CASE("a master that is farther away than the others learns the scripts of acquire and extend")
{
    far_master three;
    bool const fencing = GENERATE(false, true);
    INFO("fencing " << fencing);
    mutex m{three.client, "orders", {.ttl = 1min, .renew = false, .fencing = fencing}};
    CHECK(eventually([&] {
        if (!m.try_lock_for(20s)) return false;
        bool const there = eventually([&] { return three.holds(); }, 500ms);
        if (!there) m.unlock();
        return there;
    }));
    CHECK(eventually([&] {
        m.extend(1h);
        return eventually([&] { return three.servers[2].command({"PTTL", "orders"}).integer > 600'000; }, 500ms);
    }));
    m.unlock();
    CHECK(eventually([&] { return !three.holds(); }));
}

TEST_CASE(
    "a master whose connection takes several operations to be made is connected to, though nobody looks in between")
{
    constexpr auto connect_timeout = 200ms;
    far_master three{{.node_timeout = 10s, .connect_timeout = connect_timeout, .restart_guard = 0ms}};
    mutex m{three.client, "orders", {.ttl = 1min, .renew = false}};
    CHECK(eventually([&] {
        if (!m.try_lock_for(20s)) return false;
        std::this_thread::sleep_for(2 * connect_timeout);
        if (three.holds()) return true;
        m.unlock();
        return false;
    }));
    three.way.cut_all();
    three.way.delay(50ms, 50ms);
    CHECK(eventually([&] {
        std::this_thread::sleep_for(2 * connect_timeout);
        m.extend(1h);
        return three.servers[2].command({"PTTL", "orders"}).integer > 600'000;
    }));
}

TEST_CASE("who no longer waits has left the queue of a master that is farther away than the others, too")
{
    far_master three;
    mutex held{three.client, "orders", {.ttl = 1min}};
    masters another{three.servers.urls(), {.node_timeout = 10s, .connect_timeout = 1min, .restart_guard = 0ms}};
    mutex other{another, "orders", {.ttl = 1min}};
    REQUIRE(eventually([&] { return other.try_lock() || three.holds(); }));
    auto const waiting = [&] { return three.servers[2].command({"ZCARD", "holdfast:queue:{orders}"}).integer; };
    if (GENERATE(true, false)) {
        CHECK_FALSE(held.try_lock_for(3s));
    } else {
        std::stop_source stop;
        std::jthread const waiter{[&] { CHECK_FALSE(held.lock(stop.get_token())); }};
        CHECK(eventually([&] { return waiting() == 1; }));
        stop.request_stop();
    }
    CHECK(eventually([&] { return waiting() == 0; }));
    for (auto& server : three.servers)
        CHECK(eventually([&] { return server.command({"ZCARD", "holdfast:queue:{orders}"}).integer == 0; }));
}

TEST_CASE("a lock is kept for a waiter by the time that its way to the farthest master takes")
{
    struct expected {
        std::chrono::milliseconds each_way;
        long least;  // 50 ms, and three times the way there and back, of which 66 ms count at most
        long most;
    };
    auto const [each_way, least, most] =
        GENERATE(expected{0ms, 50, 109}, expected{10ms, 110, 247}, expected{50ms, 248, 248});
    far_master three{{.node_timeout = 10s, .connect_timeout = 1min, .restart_guard = 0ms}, each_way};
    masters another{three.servers.urls(), {.node_timeout = 10s, .connect_timeout = 1min, .restart_guard = 0ms}};
    mutex other{another, "orders", {.ttl = 1h}};
    REQUIRE(holdfast::test::lock_on_all(three.servers, other, "orders"));
    mutex held{three.client, "orders", {.ttl = 1h}};
    // A waiter says it in digits 17 to 20, in milliseconds, when it comes.
    auto const reserved = [&] {
        std::stop_source stop;
        std::jthread const waiter{[&] { static_cast<void>(held.lock(stop.get_token())); }};
        std::string who;
        bool const there = eventually([&] {
            auto const all = three.servers[0].command({"ZRANGE", "holdfast:queue:{orders}", "0", "-1"}).elements;
            if (!all.empty()) who = all.front().text;
            return !who.empty();
        });
        stop.request_stop();
        return there ? std::stol(who.substr(16, 4), nullptr, 16) : 0;
    };
    // What counts is the fastest answer so far of each master that has answered: the first waiters may not know it.
    long last = 0;
    bool const right = eventually([&, from = least, to = most] {
        last = reserved();
        return last >= from && last <= to;
    });
    CAPTURE(least, last, most);
    CHECK(right);
    other.unlock();
}
