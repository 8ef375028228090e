// SPDX-License-Identifier: MIT
#include "support/catch.hpp"
#include "support/code_of.hpp"
#include "support/eventually.hpp"
#include "support/philosophers.hpp"

#include <holdfast/adapters/multi_mutex.hpp>
#include <holdfast/lock/leased_lock.hpp>
#include <holdfast/memory.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <mutex>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::errc;
using holdfast::multi_mutex;
using holdfast::mutex;
using holdfast::store;
using holdfast::test::code_of;
using holdfast::test::eventually;

namespace {

/// Orders and stock of one client, and another client's locks of the same names.
struct shop {
    holdfast::memory::store here;
    holdfast::memory::store there = here.another_client();
    mutex orders{here, "orders"};
    mutex stock{here, "stock"};
    mutex their_orders{there, "orders"};
    mutex their_stock{there, "stock"};
    multi_mutex both{stock, orders};
};

[[nodiscard]] bool free(mutex& rival)
{
    bool const got = eventually([&] { return rival.try_lock(); });
    if (got) rival.unlock();
    return got;
}

[[nodiscard]] std::error_code released(multi_mutex& m)
{
    auto ec = make_error_code(errc::contended);
    m.unlock(ec);
    return ec;
}

}  // namespace

TEST_CASE("several locks are held together, and are free together")
{
    shop s;
    {
        std::scoped_lock hold{s.both};
        CHECK_FALSE(s.their_orders.try_lock());
        CHECK_FALSE(s.their_stock.try_lock());
        CHECK(s.both.lease().still_held());
        CHECK(s.both.name() == "orders, stock");
    }
    CHECK(free(s.their_orders));
    CHECK(free(s.their_stock));
    CHECK_FALSE(s.both.lease().still_held());
    CHECK(released(s.both) == errc::not_owner);
}

TEST_CASE("of several locks all are taken or none")
{
    shop s;
    s.their_stock.lock();
    CHECK_FALSE(s.both.try_lock());
    CHECK(free(s.their_orders));
    auto const begun = boot_clock::now();
    CHECK_FALSE(s.both.try_lock_for(50ms));
    CHECK(boot_clock::now() - begun >= 50ms);
    CHECK(free(s.their_orders));
    CHECK_FALSE(s.both.try_lock_until(std::chrono::steady_clock::now() - 1h));
    CHECK(free(s.their_orders));
    std::stop_source stop;
    bool got = true;
    std::jthread waiter{[&] { got = s.both.lock(stop.get_token()); }};
    CHECK(eventually([&] { return s.orders.lease().still_held(); }));  // it has this, and waits for the other
    stop.request_stop();
    waiter.join();
    CHECK_FALSE(got);
    CHECK(free(s.their_orders));
    s.their_stock.unlock();
    CHECK(s.both.try_lock_for(1min));
    s.both.unlock();
    s.both.lock();
    CHECK_FALSE(released(s.both));
}

TEST_CASE("a lock that is given twice is one, as the same object, another, or that of another client")
{
    shop s;
    mutex again{s.here, "stock"};
    multi_mutex all{s.stock, s.orders, again, s.stock, s.their_orders};
    CHECK(all.name() == "orders, stock");
    all.lock();
    CHECK(all.lease_of(again) == all.lease_of(s.stock));
    CHECK(all.lease_of(s.their_orders).fencing_token() == all.lease_of(s.orders).fencing_token());
    CHECK(all.lease_of(again).still_held());
    CHECK_FALSE(all.lease_of(s.their_stock).still_held());  // it was not given
    all.unlock();
    CHECK_FALSE(all.lease_of(s.stock).still_held());
    CHECK(code_of([] { multi_mutex const none{std::vector<mutex*>{}}; }) == errc::misconfigured);
}

TEST_CASE("locks of one name in different stores are different locks")
{
    holdfast::memory::store here;
    holdfast::memory::store elsewhere;
    mutex one{here, "orders"};
    mutex two{elsewhere, "orders"};
    mutex rival{elsewhere, "orders"};
    multi_mutex both{one, two};
    std::scoped_lock hold{both};
    CHECK_FALSE(rival.try_lock());
    CHECK(both.name() == "orders, orders");
}

TEST_CASE("a lock is not taken for one of that name in another store, after as many leases in each")
{
    holdfast::memory::store here;
    holdfast::memory::store elsewhere;
    mutex one{here, "orders"};
    mutex two{elsewhere, "orders"};
    mutex theirs{elsewhere.another_client(), "orders"};
    multi_mutex both{one, two};
    theirs.lock();
    CHECK_FALSE(both.try_lock());
    CHECK(both.blocker() == "orders");
    CHECK_FALSE(both.try_lock_for(1ms));
    auto waits = std::async(std::launch::async, [&] { both.lock(); });
    CHECK(eventually([&] { return elsewhere.stats().waiting == 1; }));
    theirs.unlock();
    waits.get();
    CHECK(both.lease().still_held());
}

TEST_CASE("each of several locks has its own fencing token, which increases")
{
    shop s;
    std::uint64_t last = 0;
    for (int i = 0; i < 3; ++i) {
        holdfast::leased_lock hold{s.both};
        CHECK(hold.fencing_token() == 0);
        CHECK(s.both.lease_of(s.orders).fencing_token() > last);
        CHECK(s.both.lease_of(s.stock).fencing_token() > 0);
        last = s.both.lease_of(s.orders).fencing_token();
    }
}

TEST_CASE("several locks are lost with the first that is lost; the others are kept until they are unlocked")
{
    shop s;
    mutex orders{s.here, "orders", {.ttl = 15s}};
    multi_mutex both{orders, s.stock};
    both.lock();
    auto const hold = both.lease();
    auto const lost = hold.lost_token();
    std::atomic<bool> told{false};
    std::stop_callback const tell{lost, [&] { told = true; }};
    CHECK(hold.expires_at() == orders.lease().expires_at());
    s.here.erase("orders");
    CHECK(eventually([&] { return told.load(); }));
    CHECK_FALSE(hold.still_held());
    CHECK(hold.expires_at() == boot_clock::time_point::min());
    CHECK_FALSE(s.their_stock.try_lock());
    CHECK(released(both) == errc::lease_lost);
    CHECK(free(s.their_stock));
}

TEST_CASE("what unlocking finds lost is announced, too")
{
    shop s;
    s.both.lock();
    auto const lost = s.both.lease().lost_token();
    s.here.erase("stock");
    CHECK(released(s.both) == errc::lease_lost);
    CHECK(lost.stop_requested());
}

TEST_CASE("a loss that unlocking finds is announced when all are given back")
{
    shop s;
    s.both.lock();
    bool both_free = false;
    std::stop_callback const tell{s.both.lease().lost_token(),
                                  [&] { both_free = s.their_orders.try_lock() && s.their_stock.try_lock(); }};
    s.here.erase("stock");
    s.both.unlock();
    CHECK(both_free);
}

TEST_CASE("what is lost while others are waited for is taken anew")
{
    shop s;
    mutex orders{s.here, "orders", {.ttl = 15s}};
    multi_mutex both{orders, s.stock};
    s.their_stock.lock();
    bool held = false;
    std::jthread waiter{[&] {
        both.lock();
        held = both.lease().still_held();
        both.unlock();
    }};
    CHECK(eventually([&] { return orders.lease().still_held(); }));
    s.here.erase("orders");
    CHECK(eventually([&] { return s.their_orders.try_lock(); }));
    CHECK(eventually([&] { return !orders.lease().still_held(); }));
    s.their_stock.unlock();
    CHECK(free(s.their_stock));  // both were given back
    s.their_orders.unlock();
    waiter.join();
    CHECK(held);
}

TEST_CASE("several locks are extended together")
{
    shop s;
    std::error_code ec;
    CHECK_FALSE(s.both.extend(1min, ec));
    CHECK(ec == errc::not_owner);
    CHECK(code_of([&] { s.both.extend(1min); }) == errc::not_owner);
    s.both.lock();
    CHECK(s.both.extend(2h, ec));
    CHECK_FALSE(ec);
    CHECK(s.both.lease().remaining() > 1h);
    s.both.extend(3h);
    CHECK(s.orders.lease().remaining() > 2h);
    CHECK_FALSE(s.both.extend(-1s, ec));
    CHECK(ec == errc::misconfigured);
    s.both.unlock();
}

TEST_CASE("the end of an object that holds several locks frees them")
{
    shop s;
    {
        multi_mutex both{s.orders, s.stock};
        both.lock();
    }
    CHECK(free(s.their_orders));
    CHECK(free(s.their_stock));
}

TEST_CASE("those who take several locks in whatever order do not wait for each other in a circle")
{
    bool const of_one_client = GENERATE(true, false);
    holdfast::memory::store table;
    std::vector<store> seats;
    for (int i = 0; i < 5; ++i) seats.push_back(of_one_client ? table : table.another_client());
    CHECK(holdfast::test::dine(seats));
}

TEST_CASE("those who take locks of equal names in several stores do not wait for each other in a circle")
{
    auto const stores = GENERATE(2U, 5U);  // in five, all have one name
    std::vector<holdfast::memory::store> const tables(stores);
    std::vector<std::vector<store>> seats(5);
    for (auto& seat : seats)
        for (auto const& table : tables) seat.push_back(table.another_client());
    CHECK(holdfast::test::dine(seats));
}
