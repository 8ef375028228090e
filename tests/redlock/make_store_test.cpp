// SPDX-License-Identifier: MIT
//
// Stores that are opened by a URL, on real servers.
#include "masters.hpp"
#include "support/redis_server.hpp"

#include <holdfast/make_store.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/redis.hpp>
#include <holdfast/redlock.hpp>

#include <algorithm>
#include <chrono>
#include <string>

using namespace std::chrono_literals;
using holdfast::test::redis_fleet;
using holdfast::test::redis_server;

TEST_CASE("a store is opened by the URLs of masters of which only the first has a scheme")
{
    redis_fleet servers{3};
    std::string url = "redlock+" + servers[0].url();
    for (std::size_t i = 1; i < servers.size(); ++i) url += ",127.0.0.1:" + std::to_string(servers[i].port());
    auto const store = holdfast::make_store(url);
    // The masters have no vote for a minute, as they were just started.
    holdfast::mutex m{store, "orders", {.unavailable_after = 5min}};
    auto const attempt = [&] { return holdfast::test::code_of([&] { static_cast<void>(m.try_lock()); }); };
    CHECK(attempt() == holdfast::errc::unavailable);
    CHECK(holdfast::test::eventually([&] {
        static_cast<void>(attempt());  // a connection may have taken too long before
        auto const info = servers.command({"INFO", "clients"});
        return std::all_of(info.begin(), info.end(), [](auto const& one) {
            return one.text.find("connected_clients:2") != std::string::npos;  // one of the test
        });
    }));
}

TEST_CASE("a store is opened by the path of a server's socket")
{
    redis_server server;
    auto const store = holdfast::make_store(server.unix_url());
    holdfast::mutex m{store, "orders", {.ttl = 1h, .unavailable_after = 5min}};
    m.lock();
    CHECK(server.command({"EXISTS", "orders"}).integer == 1);
    m.unlock();
    CHECK(server.command({"EXISTS", "orders"}).integer == 0);
}
