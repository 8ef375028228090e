// SPDX-License-Identifier: MIT
//
// A planned failover: the server becomes a replica, and its name leads to the new master, while the old connections
// stay open.
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/goes_on.hpp"
#include "support/proxy.hpp"
#include "support/redis_server.hpp"

#include <holdfast/redis.hpp>

#include <atomic>
#include <chrono>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using holdfast::redis::client;
using holdfast::redis::mutex;
using holdfast::test::eventually;
using holdfast::test::goes_on;
using holdfast::test::proxy;
using holdfast::test::redis_server;

namespace {

/// Two servers, the second a replica of the first, and the name of the master.
struct pair_of_servers {
    redis_server first;
    redis_server second;
    proxy name{first.port()};
    client user{name.url(), {.operation_timeout = 10s, .connect_timeout = 1min}};

    pair_of_servers()
    {
        for (auto* const one : {&first, &second}) one->command({"CONFIG", "SET", "repl-diskless-sync-delay", "0"});
        second.command({"REPLICAOF", "127.0.0.1", std::to_string(first.port())});
        REQUIRE(eventually([&] {
            return second.command({"INFO", "replication"}).text.find("master_link_status:up") != std::string::npos;
        }));
    }

    /// Effects: they change their parts, and connections from now on are to the new master.
    void fail_over()
    {
        second.command({"REPLICAOF", "NO", "ONE"});
        first.command({"REPLICAOF", "127.0.0.1", std::to_string(second.port())});
        name.lead_to(second.port());
    }
};

}  // namespace

TEST_CASE("after a failover that leaves its connections open, a lock goes to the new master")
{
    pair_of_servers servers;
    mutex m{servers.user, "orders", {.ttl = 1min, .unavailable_after = 1h}};
    m.lock();
    m.unlock();
    servers.fail_over();
    CHECK(m.try_lock_for(1min));
    CHECK(servers.second.command({"EXISTS", "orders"}).integer == 1);
    m.unlock();
    CHECK(servers.second.command({"EXISTS", "orders"}).integer == 0);
}

TEST_CASE("a lease that the new master has is renewed there")
{
    pair_of_servers servers;
    mutex m{servers.user, "orders", {.ttl = 30s}};
    m.lock();
    auto const lease = m.lease();
    REQUIRE(eventually([&] { return servers.second.command({"EXISTS", "orders"}).integer == 1; }));
    servers.fail_over();
    CHECK(goes_on(lease));
    CHECK(servers.second.command({"PTTL", "orders"}).integer > 0);
    m.unlock();
    CHECK(servers.second.command({"EXISTS", "orders"}).integer == 0);
}

TEST_CASE("who waits for a lock that is held all the time waits at the new master after a failover")
{
    pair_of_servers servers;
    servers.first.command({"SET", "orders", "theirs", "PX", "3600000"});
    REQUIRE(eventually([&] { return servers.second.command({"EXISTS", "orders"}).integer == 1; }));
    mutex m{servers.user, "orders", {.ttl = 1min}};
    std::atomic<bool> done{false};
    std::jthread const waiter{[&] { done = m.try_lock_for(5min); }};
    auto const listens = [](redis_server& to) {
        return !to.command({"PUBSUB", "CHANNELS", "holdfast:*"}).elements.empty();
    };
    CHECK(eventually([&] { return listens(servers.first); }));
    servers.fail_over();
    CHECK(eventually([&] { return listens(servers.second); }));
    servers.second.command({"DEL", "orders"});
    CHECK(eventually([&] { return done.load(); }));
}

TEST_CASE("who waits hears of releases from the server that its commands go to")
{
    redis_server first;
    redis_server second;
    proxy name{first.port()};
    client user{name.url(), {.operation_timeout = 10s, .connect_timeout = 1min}};
    mutex other{client{first.url()}, "orders", {.ttl = 1min}};
    other.lock();
    mutex m{user, "orders", {.ttl = 1min}};
    std::atomic<bool> done{false};
    std::jthread const waiter{[&] { done = m.try_lock_for(1min); }};
    auto const listens = [](redis_server& to) {
        return !to.command({"PUBSUB", "CHANNELS", "holdfast:*"}).elements.empty();
    };
    CHECK(eventually([&] { return listens(first); }));
    name.lead_to(second.port());
    // The connection for commands, and not the other one.
    first.command({"CLIENT", "KILL", "TYPE", "normal"});
    CHECK(eventually([&] { return done.load(); }));
    m.unlock();
    mutex again{client{second.url()}, "orders", {.ttl = 1min}};
    again.lock();
    done = false;
    std::jthread const next{[&] { done = m.try_lock_for(1min); }};
    CHECK(eventually([&] { return listens(second); }));
    CHECK(eventually([&] { return !listens(first); }));
    again.unlock();
    CHECK(eventually([&] { return done.load(); }));
}

TEST_CASE("a replica that does not show what it is, for want of a right, is not connected to again and again")
{
    redis_server server;
    server.command({"ACL", "SETUSER", "app", "on", ">secret", "+@all", "-info", "~*", "&*"});
    client user{server.url("app", "secret"), {.operation_timeout = 10s, .connect_timeout = 1min}};
    mutex m{user, "orders", {.ttl = 1min}};
    m.lock();
    m.unlock();
    server.command({"REPLICAOF", "127.0.0.1", "1"});
    server.command({"CONFIG", "RESETSTAT"});
    std::vector<std::jthread> threads;
    for (int i = 0; i < 50; ++i)
        threads.emplace_back([&user, i] {
            mutex one{user, "orders/" + std::to_string(i), {.ttl = 1min}};
            try {
                (void)one.try_lock_for(3s);
            } catch (std::system_error const&) {  // NOLINT(bugprone-empty-catch): it cannot be taken
            }
        });
    threads.clear();
    auto const stats = server.command({"INFO", "stats"}).text;
    auto const at = stats.find("total_connections_received:");
    REQUIRE(at != std::string::npos);
    CHECK(std::stoi(stats.substr(stats.find(':', at) + 1)) < 60);
}
