// SPDX-License-Identifier: MIT
//
// Whatever becomes of the fence of a lock on one Redis, its tokens increase, and follow the server's clock.
#include "observed.hpp"
#include "support/catch.hpp"

#include <holdfast/redis.hpp>

#include <cstdint>
#include <string>

using holdfast::redis::client;
using holdfast::redis::mutex;
using holdfast::test::calls;
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
