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
