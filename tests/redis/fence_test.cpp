// SPDX-License-Identifier: MIT
//
// Whatever becomes of the fence of a lock on one Redis, its tokens increase, and follow the server's clock.
#include "observed.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"

#include <holdfast/redis.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

using namespace std::chrono_literals;

using holdfast::redis::client;
using holdfast::redis::mutex;
using holdfast::test::calls;
using holdfast::test::code_of;
using holdfast::test::contains;
using holdfast::test::eventually;
using holdfast::test::exists;
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

}  // namespace

TEST_CASE("each acquire is one script call, the first too, with and without a fence")
{
    redis_server server;
    client redis{server.url(), unhurried()};
    mutex m{redis, "orders", {.fencing = GENERATE(true, false)}};
    for (long i = 1; i <= 3; ++i) {
        m.lock();
        m.unlock();
        CHECK(calls(server, "evalsha") + calls(server, "eval") == 2 * i);
    }
    CHECK_FALSE(exists(server, "orders"));
}

TEST_CASE("tokens of a lock that is in use follow the server's clock")
{
    redis_server server;
    client redis{server.url(), unhurried()};
    mutex m{redis, "orders"};
    std::uint64_t last = 0;
    for (int i = 0; i < 5; ++i) {
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
    auto const last = take_and_free(m);
    auto const how = GENERATE(0, 1, 2);
    if (how == 0) server.command({"DEL", fence});
    if (how == 1) server.command({"FLUSHALL"});
    if (how == 2) server.command({"SET", fence, std::to_string(last - 1'000'000)});
    auto const clock = clock_of(server);
    auto const token = take_and_free(m);
    CHECK(token > last);
    CHECK(token >= clock);
    CHECK(server.command({"PTTL", fence}).integer > 3'500'000);
    CHECK(take_and_free(m) > token);
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
    holder.lock();
    auto const before = server.command({"GET", fence}).text;
    for (int i = 0; i < 50; ++i) CHECK_FALSE(m.try_lock());
    CHECK(server.command({"GET", fence}).text == before);
    auto const last = holder.lease().fencing_token();
    holder.unlock();
    CHECK(take_and_free(m) > last);
}

TEST_CASE("a fence that somebody else wrote is replaced, tokens go on upward, and it is told once, with the key's name")
{
    redis_server server;
    std::vector<holdfast::error> told;
    client redis{server.url(), unhurried()};
    mutex m{redis, "orders", {.on_error = [&](holdfast::error const& e) { told.push_back(e); }}};
    auto last = take_and_free(m);
    for (auto const* text : {"9223372036854775807", "9223372036854775806", "9007199254740993", "1e300", "inf", "",
                             "-9223372036854775808", "list"}) {
        CAPTURE(text);
        server.command({"DEL", fence});
        server.command({text == std::string{"list"} ? "LPUSH" : "SET", fence, text});
        for (int i = 0; i < 3; ++i) {
            auto const token = take_and_free(m);
            CHECK(token > last);
            CHECK(token <= clock_of(server) + 86'400'000'000 + 64);
            last = token;
        }
        REQUIRE(told.size() == 1);
        CHECK(told.back().code() == holdfast::redis::errc::foreign_fence);
        CHECK_THAT(told.back().what(),
                   contains("key \"holdfast:fence:{orders}\"") && contains(std::to_string(server.port())));
        auto const left = server.command({"PTTL", fence}).integer;
        CHECK(left > 3'000'000);
        CHECK(left <= 3'600'000 + 86'400'000);
        CHECK_FALSE(exists(server, "orders"));
    }
}

TEST_CASE("tokens increase when the server's clock is set back, and the fence is kept until the clock has passed it")
{
    redis_server server;
    client redis{server.url(), unhurried()};
    mutex m{redis, "orders"};
    auto const ahead =
        clock_of(server) + 20 * std::uint64_t{3'600'000'000};  // as if the clock had been set back by twenty hours
    server.command({"SET", fence, std::to_string(ahead), "PX", "1000000"});
    auto last = ahead;
    for (int i = 0; i < 3; ++i) {
        auto const token = take_and_free(m);
        CHECK(token > last);
        CHECK(token < ahead + 1000);
        last = token;
    }
    CHECK(server.command({"PTTL", fence}).integer > 20 * 3'600'000);
}

TEST_CASE("who may not write the fence takes nothing, and is told so at once")
{
    redis_server server{{.config = {"user app on >secret ~orders &* +@all"}}};
    client redis{server.url("app", "secret"), unhurried()};
    mutex m{redis, "orders", {.unavailable_after = 1h}};
    if (GENERATE(false, true)) server.command({"SET", fence, "9223372036854775807"});
    CHECK(code_of([&] { m.lock(); }) == holdfast::redis::errc::not_permitted);
    CHECK_FALSE(exists(server, "orders"));
}

TEST_CASE("who is told of a fence that was replaced has a lease that is renewed, and may ask for the lock")
{
    redis_server server;
    client redis{server.url(), {.operation_timeout = 5s, .connect_timeout = 1min}};
    mutex other{redis, "orders", {.ttl = 15s}};
    int told = 0;
    mutex m{
        redis, "orders", {.ttl = 15s, .on_error = [&](holdfast::error const& e) {
                              if (e.code() != holdfast::redis::errc::foreign_fence) return;
                              ++told;
                              CHECK_FALSE(other.try_lock());
                              long long left = 15'000;
                              CHECK(eventually([&] {  // until it is renewed
                                  auto const before = std::exchange(left, server.command({"PTTL", "orders"}).integer);
                                  return left > before;
                              }));
                          }}};
    server.command({"SET", fence, "9223372036854775807"});
    m.lock();
    CHECK(told == 1);
    CHECK(m.lease().still_held());
    CHECK(exists(server, "orders"));
    m.unlock();
}
