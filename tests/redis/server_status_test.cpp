// SPDX-License-Identifier: MIT
//
// What a client knows of its server, and servers that are not fit for a lock.
#include "observed.hpp"
#include "support/catch.hpp"
#include "support/code_of.hpp"
#include "support/eventually.hpp"
#include "support/loopback.hpp"
#include "support/redis_server.hpp"

#include <holdfast/redis.hpp>
#include <holdfast/redis/identities.hpp>

#include <atomic>
#include <chrono>
#include <string>

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::redis::client;
using holdfast::redis::identities;
using holdfast::redis::mutex;
using holdfast::test::code_of;
using holdfast::test::contains;
using holdfast::test::eventually;
using holdfast::test::redis_server;
using holdfast::test::unhurried;
namespace redis = holdfast::redis;

TEST_CASE("a client that has asked nothing knows nothing, and then what it saw")
{
    redis_server server{{.password = "canary-secret"}};
    client redis{server.url(), unhurried()};
    CHECK_FALSE(redis.status().asked);
    CHECK_FALSE(redis.status().votes);
    mutex m{redis, "orders"};
    m.lock();
    auto const known = redis.status();
    CHECK_THAT(known.server, contains(std::to_string(server.port())) && !contains("canary"));
    CHECK((known.asked && known.reached && known.votes && !known.may_evict));
    CHECK_FALSE(known.why_not);
    CHECK(known.round_trip);
    REQUIRE(known.clock_ahead);
    CHECK(std::chrono::abs(*known.clock_ahead) <= known.clock_doubt + 1s);
    server.kill();
    std::error_code ec;
    m.unlock(ec);
    CHECK(code_of([&] { (void)m.try_lock(); }) == errc::unavailable);
    CHECK_FALSE(redis.status().reached);
    CHECK_FALSE(redis.status().votes);
    CHECK(redis.status().why_not == redis::errc::cannot_connect);
    CHECK(redis.status().last_error);
    CHECK_THAT(redis.status().describe(),
               contains("no vote (cannot connect; ") && contains("), not connected; when last connected: answers in "));
}

TEST_CASE("what is known from an earlier connection is described as that")
{
    redis::server_status one{.server = "redis://a:1", .asked = true, .reached = true, .votes = true};
    one.round_trip = 1700us;
    one.clock_ahead = -20ms;
    one.clock_doubt = 100us;
    CHECK(one.describe() == "redis://a:1: votes, answers in 1.7 ms, clock 20.0 ms behind, give or take 0.1 ms");
    one.reached = one.votes = false;
    one.why_not = redis::errc::cannot_connect;
    CHECK(one.describe() == "redis://a:1: no vote (cannot connect), not connected; when last connected: answers in "
                            "1.7 ms, clock 20.0 ms behind, give or take 0.1 ms");
    one.round_trip = {};
    one.clock_ahead = {};
    CHECK(one.describe() == "redis://a:1: no vote (cannot connect), not connected");
}

TEST_CASE("a user without the right to INFO locks, and less is known")
{
    redis_server server{{.config = {"user app on >app-secret ~* &* +@all -info"}}};
    client redis{server.url("app", "app-secret"), unhurried()};
    mutex m{redis, "orders"};
    m.lock();
    CHECK(redis.status().votes);
    CHECK_FALSE(redis.status().may_evict);
}

TEST_CASE("a server that may evict keys is told, once for each client")
{
    redis_server server{{.config = {"maxmemory-policy allkeys-lru"}}};
    std::atomic<int> told{0};
    holdfast::lock_options const options{.on_error = [&](holdfast::error const& e) {
        CHECK(e.code() == redis::errc::may_evict);
        CHECK(e.code() == errc::misconfigured);
        CHECK_THAT(std::string{e.what()},
                   contains("allkeys-lru") && contains(std::to_string(server.port())) && contains("noeviction"));
        ++told;
    }};
    for (int i = 1; i <= 2; ++i) {
        client redis{server.url(), {.operation_timeout = 10s, .connect_timeout = 1min, .connections = 4}};
        for (auto const* name : {"a", "b", "c", "d", "e", "f"}) {
            mutex m{redis, name, options};
            m.lock();
        }
        CHECK(told == i);
        CHECK(redis.status().may_evict);
        CHECK(redis.status().votes);
    }
}

TEST_CASE("a node of a cluster is refused, also where it owns the slot of the key")
{
    auto const bus = holdfast::test::bind_free_port();  // nobody else is given it
    redis_server server{{.config = {"cluster-enabled yes", "cluster-port " + std::to_string(bus.port)}}};
    REQUIRE(server.command({"CLUSTER", "ADDSLOTSRANGE", "0", "16383"}).text == "OK");
    REQUIRE(eventually([&] {
        return server.command({"CLUSTER", "INFO"}).text.find("cluster_state:ok") != std::string::npos;
    }));
    REQUIRE(server.command({"SET", "other", "x"}).text == "OK");
    client redis{server.url(), unhurried()};
    mutex m{redis, "orders", {.unavailable_after = 1h}};
    std::string what;
    CHECK(code_of([&] { m.lock(); }, &what) == redis::errc::moved);
    CHECK_THAT(what, contains("cluster"));
    CHECK(server.command({"EXISTS", "orders"}).integer == 0);
    CHECK(redis.status().why_not == redis::errc::moved);
}

TEST_CASE("a replica is refused, though it would take writes")
{
    redis_server master;
    redis_server server;
    server.command({"REPLICAOF", "127.0.0.1", std::to_string(master.port())});
    server.command({"CONFIG", "SET", "replica-read-only", "no"});
    client redis{server.url(), unhurried()};
    mutex m{redis, "orders", {.unavailable_after = 100ms}};
    CHECK(code_of([&] { m.lock(); }) == redis::errc::read_only);
    CHECK(server.command({"EXISTS", "orders"}).integer == 0);
    server.command({"REPLICAOF", "NO", "ONE"});
    CHECK(m.try_lock_for(1min));
}

TEST_CASE("of nodes that are one server the first that said so has its vote, until it is another",
          "[redis][identities]")
{
    identities ids;
    CHECK_FALSE(ids.greeted(2, "a"));
    CHECK(ids.greeted(0, "a") == 2U);
    CHECK(ids.same_as(0) == 2U);
    CHECK(ids.greeted(1, "a") == 2U);
    CHECK_FALSE(ids.greeted(2, "a"));  // it connects again
    CHECK_FALSE(ids.greeted(2, "b"));  // it was restarted
    CHECK(ids.greeted(1, "b") == 2U);
    CHECK_FALSE(ids.greeted(0, "a"));
    CHECK(ids.greeted(2, "a") == 0U);
    CHECK_FALSE(ids.greeted(1, "b"));
    CHECK_FALSE(ids.greeted(3, ""));  // they do not say who they are
    CHECK_FALSE(ids.greeted(4, ""));
}
