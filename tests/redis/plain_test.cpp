// SPDX-License-Identifier: MIT
//
// A lock that was taken a moment ago is taken by two plain commands: SET, and INCRBY of the fence. Whatever becomes of the fence, the tokens
// increase, and follow the server's clock.
#include "observed.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/proxy.hpp"

#include <holdfast/redis.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

using namespace std::chrono_literals;
using holdfast::redis::client;
using holdfast::redis::mutex;
using holdfast::test::calls;
using holdfast::test::containing;
using holdfast::test::eventually;
using holdfast::test::exists;
using holdfast::test::proxy;
using holdfast::test::redis_server;
using holdfast::test::take_and_free;
using holdfast::test::unhurried;

namespace {

std::string const fence = "holdfast:fence:{orders}";

/// Returns: the server's clock in µs since 1970.
std::uint64_t clock_of(redis_server& server)
{
    auto const said = server.command({"TIME"}).elements;
    return std::stoull(said.at(0).text) * 1'000'000 + std::stoull(said.at(1).text);
}

/// Effects: has `section` take the lock by plain commands. A machine that stood still for a second has the script asked.
void plainly(redis_server& server, std::function<void()> const& section)
{
    REQUIRE(eventually([&] {
        auto const before = calls(server, "incrby");
        section();
        return calls(server, "incrby") > before;
    }));
}

}  // namespace

TEST_CASE("a lock that is taken again at once takes a script for its release only, by a mutex made anew too")
{
    redis_server server;
    client redis{server.url(), unhurried()};
    mutex m{redis, "orders"};
    auto last = take_and_free(m);
    auto const by_one = [&](mutex& one) {
        auto const token = take_and_free(one);
        CHECK(token > last);
        last = token;
    };
    plainly(server, [&] { by_one(m); });
    plainly(server, [&] {
        mutex anew{redis, "orders"};
        by_one(anew);
    });
    CHECK_FALSE(exists(server, "orders"));
}

TEST_CASE("tokens of a lock that is in use follow the server's clock, by a script each second")
{
    redis_server server;
    client redis{server.url(), unhurried()};
    mutex m{redis, "orders"};
    auto last = take_and_free(m);
    for (int i = 0; i < 3; ++i) {
        plainly(server, [&] { last = take_and_free(m); });
        std::this_thread::sleep_for(1100ms);
        auto const clock = clock_of(server);
        auto const token = take_and_free(m);
        CHECK(token > last);
        CHECK(token >= clock);
        last = token;
    }
}

TEST_CASE("a fence that is lost behind the client's back is made anew by the clock, with an end")
{
    redis_server server;
    client redis{server.url(), unhurried()};
    mutex m{redis, "orders"};
    auto last = take_and_free(m);
    plainly(server, [&] { last = take_and_free(m); });
    auto const how = GENERATE(0, 1, 2);
    std::uint64_t clock = 0;
    REQUIRE(eventually([&] {
        last = take_and_free(m);
        if (how == 0) server.command({"DEL", fence});
        if (how == 1) server.command({"FLUSHALL"});
        if (how == 2) server.command({"SET", fence, std::to_string(last - 1'000'000)});
        clock = clock_of(server);
        auto const before = calls(server, "incrby");
        auto const token = take_and_free(m);
        CHECK(token > last);
        CHECK(token >= clock);
        last = token;
        return calls(server, "incrby") > before;  // it was tried plainly
    }));
    CHECK(server.command({"PTTL", fence}).integer > 3'500'000);
    CHECK(take_and_free(m) > last);
    CHECK_FALSE(exists(server, "orders"));
}

TEST_CASE("a lock that is taken again and again does not drive its fence ahead of the server's clock")
{
    redis_server server;
    client redis{server.unix_url(), unhurried()};
    mutex m{redis, "orders", {.deferred_release = true}};
    std::uint64_t last = 0;
    for (int i = 0; i < 1000; ++i) last = take_and_free(m);
    CHECK(last <= clock_of(server) + 64);
    server.command({"FLUSHALL"});
    CHECK(take_and_free(m) > last);
}

TEST_CASE("who is refused again and again does not drive the fence on")
{
    redis_server server;
    client redis{server.url(), unhurried()};
    client elsewhere{server.url(), unhurried()};
    mutex m{redis, "orders"};
    mutex holder{elsewhere, "orders"};
    take_and_free(m);
    plainly(server, [&] { take_and_free(m); });
    holder.lock();
    auto const before = calls(server, "incrby");
    for (int i = 0; i < 50; ++i) CHECK_FALSE(m.try_lock());
    CHECK(calls(server, "incrby") - before <= 1);
    auto const last = holder.lease().fencing_token();
    holder.unlock();
    CHECK(take_and_free(m) > last);
}

TEST_CASE("a lock whose fence does not answer is taken with a token that is greater, or is not left behind")
{
    redis_server server;
    proxy way{server.port()};
    client redis{way.url(), unhurried()};
    mutex m{redis, "orders", {.ttl = 1h}};  // what is left behind is seen
    auto last = take_and_free(m);
    auto const how = GENERATE(0, 1, 2);
    REQUIRE(eventually([&] {
        last = take_and_free(m);
        if (how == 0) way.answer_next_request("-ERR increment or decrement would overflow\r\n", {.matches = containing("INCRBY")});
        if (how == 1) way.drop_next_request({.matches = containing("INCRBY")});
        if (how == 2) way.swallow_next_reply({.matches = containing("INCRBY")});
        CHECK(take_and_free(m) > last);
        return way.struck() > 0;
    }));
    CHECK(eventually([&] { return !exists(server, "orders"); }));
}

TEST_CASE("a user without the right to INCRBY takes locks by the script, with tokens that increase, and tries the other way once")
{
    redis_server server{{.config = {"user app on >secret ~* &* +@all -incrby"}}};
    client redis{server.url("app", "secret"), {.operation_timeout = 10s}};
    mutex m{redis, "orders"};
    auto last = take_and_free(m);
    for (int i = 0; i < 50; ++i) {
        auto const token = take_and_free(m);
        CHECK(token > last);
        last = token;
    }
    auto const log = server.command({"ACL", "LOG"}).elements;  // the same again and again is one entry with a count
    REQUIRE(log.size() <= 1);
    for (auto const& entry : log) CHECK(entry.elements.at(1).integer == 1);
    CHECK_FALSE(exists(server, "orders"));
}
