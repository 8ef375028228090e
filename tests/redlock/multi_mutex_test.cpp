// SPDX-License-Identifier: MIT
//
// Several locks at once, on real servers.
#include "support/catch.hpp"
#include "support/code_of.hpp"
#include "support/philosophers.hpp"
#include "support/redis_server.hpp"

#include <holdfast/adapters/multi_mutex.hpp>
#include <holdfast/memory.hpp>
#include <holdfast/redis.hpp>
#include <holdfast/redlock.hpp>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <string>
#include <system_error>
#include <vector>

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::multi_mutex;
using holdfast::mutex;
using holdfast::redis::client;
using holdfast::redlock::masters;
using holdfast::test::code_of;
using holdfast::test::redis_fleet;
using holdfast::test::redis_server;

namespace {

holdfast::redlock::masters_options const patient{.node_timeout = 10s, .connect_timeout = 1min, .restart_guard = 0ms};

/// Returns: the URL of `server`, with another name of its host.
[[nodiscard]] std::string also_named(redis_server const& server) { return server.url("", "", "localhost"); }

[[nodiscard]] std::vector<std::string> also_named(redis_fleet& servers)
{
    std::vector<std::string> urls;
    for (auto const& one : servers) urls.push_back(also_named(one));
    return urls;
}

/// Returns: how an attempt at both ends, which is to leave none of them.
[[nodiscard]] std::error_code attempt_at(mutex& one, mutex& other)
{
    multi_mutex both{one, other};
    auto const got = code_of([&] { both.lock(); });
    CHECK(code_of([&] { static_cast<void>(both.try_lock()); }) == got);
    REQUIRE(one.try_lock_for(1min));
    one.unlock();
    return got;
}

}  // namespace

TEST_CASE("an error of one gives the others back")
{
    redis_server server;
    client away{server.url()};
    server.kill();
    holdfast::memory::store here;
    mutex orders{here, "orders"};
    mutex stock{here, "stock"};
    mutex missing{away, "parcels", {.unavailable_after = 100ms}};
    multi_mutex m{missing, orders, stock};
    CHECK(m.name() == "orders, parcels, stock");
    CHECK(code_of([&] { m.lock(); }) == errc::unavailable);
    CHECK(code_of([&] { static_cast<void>(m.try_lock()); }) == errc::unavailable);
    CHECK(orders.try_lock_for(1min));
    CHECK(stock.try_lock_for(1min));
    CHECK_FALSE(m.lease().still_held());
}

TEST_CASE("those who take several locks of a server in whatever order do not wait for each other in a circle")
{
    redis_server server;
    std::vector<holdfast::store> seats;
    for (int i = 0; i < 5; ++i) seats.push_back(client{server.url()});
    CHECK(holdfast::test::dine(seats));
}

TEST_CASE("clients of a Redis that name it alike have one lock; the order of a fleet's masters does not matter")
{
    redis_fleet servers{3};
    client one{servers[0].url()};
    client same{servers[0].url()};
    client shop{servers[0].url(), {.key_prefix = "shop:"}};
    mutex a{one, "orders"};
    mutex b{same, "orders"};
    mutex other{shop, "orders"};
    mutex same_key{one, "shop:orders"};
    multi_mutex all{other, a, b, same_key};
    CHECK(all.name() == "orders, orders");  // by their keys: the other is shop:orders
    CHECK(all.lease_of(a) == all.lease_of(b));
    std::vector<std::string> urls;
    for (auto& server : servers) urls.push_back(server.url());
    masters const fleet{urls};
    std::reverse(urls.begin(), urls.end());
    masters const turned{urls};
    mutex c{fleet, "stock"};
    mutex d{turned, "stock"};
    multi_mutex stock{c, d};
    CHECK(stock.name() == "stock");
    std::scoped_lock hold{all};
    CHECK(all.lease_of(same_key).fencing_token() == other.lease().fencing_token());
}

TEST_CASE("a lock of one fleet by two names of its masters is refused")
{
    redis_fleet servers{3};
    masters const fleet{servers.urls(), patient};
    masters const same{also_named(servers), patient};
    mutex a{fleet, "orders", {.ttl = 30s}};
    mutex b{same, "orders", {.ttl = 30s}};
    CHECK(attempt_at(a, b) == std::errc::resource_deadlock_would_occur);
}

TEST_CASE("of a fleet and one of its masters, a lock of one name is refused if the fleet's is in the way")
{
    redis_fleet servers{3};
    masters const fleet{servers.urls(), patient};
    client one{also_named(servers[0]),
               {.operation_timeout = 10s, .connect_timeout = 1min}};  // after the fleet, in the order of names
    mutex a{fleet, "orders", {.ttl = 30s}};
    mutex b{one, "orders", {.ttl = 30s}};
    CHECK(attempt_at(a, b) == std::errc::resource_deadlock_would_occur);
}

TEST_CASE("of one master and its fleet, both locks of one name are taken, as the others are a majority")
{
    redis_fleet servers{3};
    client one{servers[0].url(),
               {.operation_timeout = 10s, .connect_timeout = 1min}};  // before the fleet, in the order of names
    masters const fleet{also_named(servers), patient};
    mutex a{one, "orders", {.ttl = 30s}};
    mutex b{fleet, "orders", {.ttl = 30s}};
    multi_mutex both{a, b};
    REQUIRE(both.try_lock_for(1min));
    CHECK(both.lease_of(b).still_held());
}
