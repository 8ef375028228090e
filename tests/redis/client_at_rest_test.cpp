// SPDX-License-Identifier: MIT
//
// A client that is not used any more gives back what a server may have granted it while it did not answer.
#include "conformance/sleeper.hpp"
#include "observed.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/proxy.hpp"

#include <holdfast/redis.hpp>

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::errc;
using holdfast::redis::client;
using holdfast::redis::mutex;
using holdfast::test::aftermath;
using holdfast::test::code_of;
using holdfast::test::containing;
using holdfast::test::eventually;
using holdfast::test::exists;
using holdfast::test::proxy;
using holdfast::test::redis_server;
using holdfast::test::sleeper;

namespace {

holdfast::lock_options lasting() { return {.ttl = 1h, .unavailable_after = 5min}; }

/// A server behind a proxy, and a client of it that is connected; the server knows the scripts.
struct connected {
    redis_server server;
    proxy way{server.port()};
    std::optional<client> redis;

    explicit connected(std::chrono::milliseconds operation_timeout = 2s)
    {
        redis.emplace(way.url(), holdfast::redis::client_options{.operation_timeout = operation_timeout,
                                                                 .connect_timeout = 500ms,
                                                                 .connections = 1});
        mutex m{*redis, "before", lasting()};
        m.lock();
        m.unlock();
    }

    /// Effects: the server grants the next lock of that name, and the client does not hear it; nothing more passes.
    void grant_unheard(std::string const& name)
    {
        way.swallow_next_reply({.matches = containing(name), .then = aftermath::silence});
    }

    /// Effects: all passes again; nothing more is called. Requires: the server has "orders". Returns: whether that is
    /// given back.
    [[nodiscard]] bool gets_it_back()
    {
        CHECK(exists(server, "orders"));
        way.pass();
        return eventually([&] { return !exists(server, "orders"); });
    }
};

}  // namespace

TEST_CASE("what a server granted and a caller gave up is given back when it answers again, without another call")
{
    connected c;
    mutex m{*c.redis, "orders", lasting()};
    c.grant_unheard("orders");
    sleeper one{[&] { return !code_of([&] { (void)m.try_lock(); }); }};
    CHECK(eventually([&] { return c.way.struck() == 1; }));
    c.way.blackhole();
    CHECK_FALSE(one.join());
    CHECK(c.gets_it_back());
}

TEST_CASE("what a server that stood still was asked for is given back when it goes on, without another call")
{
    connected c;
    mutex m{*c.redis, "orders", lasting()};
    c.server.pause();
    CHECK(code_of([&] { (void)m.try_lock_for(1ms); }) == errc::unavailable);
    c.server.resume();
    CHECK(eventually([&] { return exists(c.server, "holdfast:fence:{orders}"); }));  // it granted it
    CHECK(eventually([&] { return !exists(c.server, "orders"); }));
}

TEST_CASE("a caller that is stopped before the answer leaves nothing although the connection ends, also by a reset")
{
    bool const reset = GENERATE(true, false);
    CAPTURE(reset);
    connected c;
    mutex m{*c.redis, "orders", lasting()};
    c.grant_unheard("orders");
    std::stop_source stop;
    sleeper one{[&] { return m.lock(stop.get_token()); }};
    CHECK(eventually([&] { return c.way.struck() == 1; }));
    c.way.blackhole();
    stop.request_stop();
    CHECK_FALSE(one.join());
    if (reset) c.way.cut_all();
    CHECK(c.gets_it_back());
}

TEST_CASE("a connection that is reset before the answer leaves nothing, although no server can be reached for a while")
{
    connected c;
    mutex m{*c.redis, "orders", lasting()};
    c.way.swallow_next_reply({.matches = containing("orders"), .then = aftermath::refuse});
    CHECK(code_of([&] { (void)m.try_lock(); }) == errc::unavailable);
    CHECK(c.gets_it_back());
}

TEST_CASE("what several locks of one connection gave up is all given back, without another call")
{
    constexpr std::size_t most = 8;
    connected c;
    std::deque<mutex> locks;
    for (std::size_t i = 0; i < most; ++i) locks.emplace_back(*c.redis, "orders/" + std::to_string(i), lasting());
    auto const held = [&] { return c.server.command({"KEYS", "orders/*"}).elements.size(); };
    std::stop_source stop;
    c.way.delay(0s, 1h);  // the server is asked, and not heard
    {
        std::deque<sleeper> all;
        for (auto& m : locks) all.emplace_back([&] { return m.lock(stop.get_token()); });
        CHECK(eventually([&] { return held() == most; }));
        c.way.blackhole();
        stop.request_stop();
        for (auto& one : all) CHECK_FALSE(one.join());
    }
    CHECK(held() == most);
    c.way.heal();
    c.way.cut_all();
    CHECK(eventually([&] { return held() == 0; }));
}

TEST_CASE("an unlock that was not answered is repeated when the server answers again, without another call")
{
    connected c;
    mutex m{*c.redis, "orders", lasting()};
    m.lock();
    c.way.blackhole();
    std::error_code ec;
    m.unlock(ec);
    CHECK(ec == errc::outcome_unknown);
    CHECK(c.gets_it_back());
}

TEST_CASE("a release that the server refused for now is repeated without another call")
{
    connected c;
    mutex m{*c.redis, "orders", lasting()};
    m.lock();
    c.way.answer_next_request("-LOADING Redis is loading the dataset in memory\r\n",
                              {.matches = containing("orders"), .times = 3});
    std::error_code ec;
    m.unlock(ec);
    CHECK(ec);
    CHECK(eventually([&] { return !exists(c.server, "orders"); }));
    CHECK(c.way.struck() == 3);
}

TEST_CASE("a client that has something to give back does not connect again and again without a pause")
{
    connected c;
    mutex m{*c.redis, "orders", lasting()};
    m.lock();
    c.way.refuse();
    std::error_code ec;
    m.unlock(ec);
    CHECK(ec);
    c.way.pass();
    c.way.drop_next_request({.times = 1'000'000});  // it accepts, and resets
    auto const before = c.way.connections();
    auto const begun = boot_clock::now();
    CHECK(eventually([&] { return c.way.connections() >= before + 5; }));
    CHECK(boot_clock::now() - begun >= 1s);
    c.way.heal();
    CHECK(eventually([&] { return !exists(c.server, "orders"); }));
}

TEST_CASE("the end of a client does not wait for what it could not give back")
{
    connected c;
    {
        mutex m{*c.redis, "orders", lasting()};
        m.lock();
        c.way.blackhole();
        std::error_code ec;
        m.unlock(ec);
        CHECK(ec == errc::outcome_unknown);
        auto const before = c.way.connections();
        CHECK(eventually([&] { return c.way.connections() > before; }));  // it tries to
    }
    auto const begun = boot_clock::now();
    c.redis.reset();
    CHECK(boot_clock::now() - begun < 1min);
    CHECK(exists(c.server, "orders"));
}
