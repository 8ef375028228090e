// SPDX-License-Identifier: MIT
//
// A client that is not used any more gives back what masters may have granted it while they did not answer.
#include "conformance/sleeper.hpp"
#include "masters.hpp"
#include "support/catch.hpp"
#include "support/code_of.hpp"
#include "support/eventually.hpp"
#include "support/proxy.hpp"

#include <holdfast/redlock.hpp>

#include <chrono>
#include <cstddef>
#include <deque>
#include <stop_token>
#include <string>
#include <system_error>
#include <vector>

using namespace std::chrono_literals;
using holdfast::redlock::mutex;
using holdfast::test::aftermath;
using holdfast::test::code_of;
using holdfast::test::containing;
using holdfast::test::copies;
using holdfast::test::eventually;
using holdfast::test::lock_on_all;
using holdfast::test::proxied_masters;
using holdfast::test::proxy;
using holdfast::test::redis_fleet;
using holdfast::test::sleeper;

namespace {

constexpr auto node_timeout = 2s;

/// Effects: the masters that are not the first of `three` grant what is asked for next of "orders", and are not heard.
void grant_unheard(proxied_masters& three)
{
    for (std::size_t i : {1U, 2U})
        three.ways[i].swallow_next_reply({.matches = containing("orders"), .then = aftermath::silence});
}

/// Effects: waits until both have granted it; then nothing more passes.
void silence(proxied_masters& three)
{
    for (std::size_t i : {1U, 2U}) {
        CHECK(eventually([&] { return three.ways[i].struck() == 1; }));
        three.ways[i].blackhole();
    }
}

}  // namespace

TEST_CASE("what masters granted and a caller gave up is given back when they answer again, without another call")
{
    bool const reset = GENERATE(true, false);
    bool const stopped = GENERATE(true, false);
    CAPTURE(reset, stopped);
    proxied_masters three{node_timeout};
    mutex m{three.client, "orders", {.ttl = 1h, .unavailable_after = 5min}};
    grant_unheard(three);
    std::stop_source stop;
    sleeper one{[&] {
        if (stopped) return m.lock(stop.get_token());
        return !code_of([&] { (void)m.try_lock(); });
    }};
    silence(three);
    if (stopped) stop.request_stop();
    CHECK_FALSE(one.join());
    CHECK(three.exists(1, "orders"));
    CHECK(three.exists(2, "orders"));
    for (auto& way : three.ways) {
        if (reset) way.cut_all();
        way.pass();
    }
    CHECK(eventually([&] { return copies(three.servers, "orders") == 0; }));
}

TEST_CASE("what several locks of the same masters gave up is all given back, without another call")
{
    constexpr std::size_t most = 4;
    proxied_masters three{node_timeout};
    std::deque<mutex> locks;
    for (std::size_t i = 0; i < most; ++i)
        locks.emplace_back(three.client, "orders/" + std::to_string(i),
                           holdfast::lock_options{.ttl = 1h, .unavailable_after = 5min});
    auto const held = [&](std::size_t i) { return three.servers[i].command({"KEYS", "orders/*"}).elements.size(); };
    for (std::size_t i : {1U, 2U}) three.ways[i].delay(0s, 1h);
    std::stop_source stop;
    {
        std::deque<sleeper> all;
        for (auto& m : locks) all.emplace_back([&] { return m.lock(stop.get_token()); });
        CHECK(eventually([&] { return held(1) == most && held(2) == most; }));
        for (std::size_t i : {1U, 2U}) three.ways[i].blackhole();
        stop.request_stop();
        for (auto& one : all) CHECK_FALSE(one.join());
    }
    CHECK(held(1) == most);
    CHECK(held(2) == most);
    for (auto& way : three.ways) {
        way.heal();
        way.cut_all();
    }
    CHECK(eventually([&] { return held(0) + held(1) + held(2) == 0; }));
}

TEST_CASE("one of five masters that hung frees a lock soon after it answers again, without another call")
{
    redis_fleet servers{5};
    std::vector<proxy> ways;
    std::vector<std::string> urls;
    for (auto& server : servers) urls.push_back(ways.emplace_back(server.port()).url());
    holdfast::redlock::masters const client{
        urls, {.node_timeout = node_timeout, .connect_timeout = 1min, .restart_guard = 0ms}};
    mutex before{client, "before", {.ttl = 1h, .unavailable_after = 5min}};
    REQUIRE(lock_on_all(servers, before, "before"));
    before.unlock();
    mutex m{client, "orders", {.ttl = 1h, .renew = false, .unavailable_after = 5min}};
    bool const when_asked = GENERATE(true, false);  // or when it is given back
    CAPTURE(when_asked);
    if (when_asked) {
        ways[4].swallow_next_reply({.matches = containing("orders"), .then = aftermath::silence});
        m.lock();
        CHECK(eventually([&] { return ways[4].struck() == 1; }));
        ways[4].blackhole();
    } else {
        REQUIRE(lock_on_all(servers, m, "orders"));
        ways[4].blackhole();
    }
    std::error_code ec;
    m.unlock(ec);
    CHECK_FALSE(ec);
    CHECK(servers[4].command({"EXISTS", "orders"}).integer == 1);
    ways[4].cut_all();
    ways[4].pass();
    CHECK(eventually([&] { return copies(servers, "orders") == 0; }));
}

TEST_CASE("a master whose grant was not heard is given back to without harm to the holder, who gets it again")
{
    proxied_masters three{node_timeout};
    mutex m{three.client, "orders", {.ttl = 1h, .renew = false, .unavailable_after = 5min}};
    holdfast::redlock::masters const elsewhere{three.servers.urls(),
                                               {.node_timeout = 10s, .connect_timeout = 1min, .restart_guard = 0ms}};
    mutex rival{elsewhere, "orders", {.ttl = 1h}};
    three.ways[1].hold(containing("orders"));
    three.ways[2].swallow_next_reply({.matches = containing("orders"), .then = aftermath::refuse});
    sleeper one{[&] { return m.try_lock(); }};
    CHECK(eventually([&] { return three.ways[2].struck() == 1 && three.ways[1].held() == 1; }));
    CHECK(three.exists(2, "orders"));
    three.ways[1].let_go();
    REQUIRE(one.join());
    three.ways[2].heal();
    CHECK(eventually([&] { return !three.exists(2, "orders"); }));
    CHECK(m.lease().still_held());
    CHECK_FALSE(rival.try_lock());
    CHECK(eventually([&] {
        m.extend(2h);
        return three.exists(2, "orders");
    }));
    m.unlock();
    CHECK(eventually([&] { return copies(three.servers, "orders") == 0; }));
}
