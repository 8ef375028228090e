// SPDX-License-Identifier: MIT
//
// Readers and writers on several masters, of which some are down or have lost their memory.
#include "masters.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"

#include <holdfast/shared_mutex.hpp>

#include <chrono>
#include <string>
#include <system_error>

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::leased_lock;
using holdfast::leased_shared_lock;
using holdfast::redlock::masters;
using holdfast::redlock::shared_mutex;
using holdfast::test::copies;
using holdfast::test::eventually;
using holdfast::test::five_masters;
using holdfast::test::redis_fleet;

TEST_CASE("with two of five masters down readers and writers go on, and from one side to the other")
{
    five_masters five;
    auto const other = masters{five.servers.urls(), five_masters::options()};
    shared_mutex ours{five.client, "orders"};
    shared_mutex theirs{other, "orders"};
    five.servers.kill(0);
    five.servers.kill(3);
    {
        leased_shared_lock const one{ours, 1min};
        leased_shared_lock two{theirs, 1min};
        REQUIRE(one);
        REQUIRE(two);
        CHECK_FALSE(theirs.try_lock());
        std::error_code ec;
        CHECK(two.extend(1h, ec));
        CHECK_FALSE(ec);
    }
    REQUIRE(ours.try_lock_for(1min));
    auto const written = ours.lease().fencing_token();
    ours.unlock_and_lock_shared();
    CHECK(ours.lease_shared().fencing_token() > written);
    CHECK_FALSE(theirs.try_lock());
    CHECK(ours.try_unlock_shared_and_lock());
    CHECK_FALSE(theirs.try_lock_shared());
    ours.unlock();
    CHECK(theirs.try_lock_for(1min));
    theirs.unlock();
    CHECK(eventually([&] { return five.copies("orders") == 0; }));
}

TEST_CASE("without a majority an exclusive hold does not become a shared one, and stays")
{
    five_masters five;
    shared_mutex m{five.client, "orders", {.ttl = 10min}};
    m.lock();
    for (std::size_t i = 0; i < 3; ++i) five.servers.kill(i);
    CHECK(holdfast::test::code_of([&] { m.unlock_and_lock_shared(); }) == errc::unavailable);
    CHECK(m.lease().still_held());
    CHECK_FALSE(m.lease_shared().still_held());
    CHECK(eventually([&] { return copies(five.servers, "holdfast:readers:{orders}") == 0; }));
    std::error_code ec;
    m.unlock(ec);
    CHECK(ec);  // a majority cannot be told
    CHECK(eventually([&] { return five.copies("orders") == 0; }));
}

TEST_CASE("a hold does not change sides if that depends on a master that refuses the password, which is named")
{
    redis_fleet two{2};
    redis_fleet locked{1, {.password = "right"}};
    masters const client{{locked[0].url("", "wrong"), two[0].url(), two[1].url()},
                         {.node_timeout = 10s, .connect_timeout = 1min, .restart_guard = 0ms}};
    shared_mutex m{client, "orders", {.ttl = 10min}};
    REQUIRE(m.try_lock_for(1min));
    two[1].command({"SET", "orders", "another", "PX", "600000"});
    std::string what;
    CHECK(holdfast::test::code_of([&] { m.unlock_and_lock_shared(); }, &what) == errc::unavailable);
    CHECK_THAT(what, holdfast::test::contains(std::to_string(locked[0].port()) + ": authentication failed"));
    CHECK(m.lease().still_held());
}

TEST_CASE("a hold does not change sides if that depends on a master that hangs, and is not said to be lost")
{
    redis_fleet servers{3};
    masters const client{servers.urls(), {.node_timeout = 5s, .connect_timeout = 1min, .restart_guard = 0ms}};
    shared_mutex m{client, "orders", {.ttl = 10min}};
    holdfast::redlock::mutex probe{client, "orders", {.ttl = 10min}};
    REQUIRE(holdfast::test::lock_on_all(servers, probe, "orders"));  // all are connected
    probe.unlock();
    REQUIRE(eventually([&] { return copies(servers, "orders") == 0; }));
    bool const reads = GENERATE(false, true);
    CAPTURE(reads);
    servers[2].command({"SET", "orders", "another", "PX", "600000"});
    reads ? m.lock_shared() : m.lock();
    servers[2].command({"PING"});  // what was asked of it before is refused now
    servers[2].command({"DEL", "orders"});
    servers.pause(1);
    auto const code = holdfast::test::code_of(
        [&] { reads ? static_cast<void>(m.try_unlock_shared_and_lock()) : m.unlock_and_lock_shared(); });
    servers.resume(1);
    if (reads)
        CHECK_FALSE(code);  // it returns false
    else
        CHECK(code == errc::unavailable);
    CHECK((reads ? m.lease_shared() : m.lease()).still_held());
    CHECK_FALSE((reads ? m.lease() : m.lease_shared()).still_held());
    reads ? m.unlock_shared() : m.unlock();
}

TEST_CASE("a master that has forgotten a reader is told of it by the next renewal, unless a writer is there")
{
    redis_fleet servers{3};
    masters const client{servers.urls(), {.node_timeout = 10s, .connect_timeout = 1min, .restart_guard = 0ms}};
    shared_mutex m{client, "orders", {.ttl = 10min}};
    leased_shared_lock reading{m, 1min};
    REQUIRE(reading);
    std::error_code ec;
    auto const known_to_all = [&] {
        return reading.extend(10min, ec) && copies(servers, "holdfast:readers:{orders}") == 3 &&
               copies(servers, "orders") == 3;
    };
    REQUIRE(eventually(known_to_all));  // one that was not connected yet was not asked
    servers.restart(1);
    CHECK(eventually(known_to_all));
    servers.restart(1);
    servers[1].command({"SET", "orders", "another", "PX", "600000"});
    for (int n = 0; n < 3; ++n) CHECK(reading.extend(10min, ec));
    CHECK(servers[1].command({"GET", "orders"}).text == "another");
    CHECK(reading.still_held());
}

TEST_CASE("no writer is granted the lock while readers have it that two of three masters have forgotten")
{
    redis_fleet servers{3};
    holdfast::redlock::masters_options const options{.node_timeout = 1s, .connect_timeout = 1min, .restart_guard = 4s};
    masters const ours{servers.urls(), options};
    masters const others{servers.urls(), options};
    holdfast::lock_options const brief{.ttl = 4s, .unavailable_after = 10min};
    shared_mutex readers{ours, "orders", brief};
    shared_mutex writers{others, "orders", brief};
    leased_shared_lock const reading{readers};  // when the masters have run for long enough
    auto const fence = reading.fencing_token();
    servers.restart(0);
    servers.restart(1);
    leased_lock const writing{writers};
    CHECK_FALSE(reading.still_held());
    CHECK(writing.fencing_token() > fence);
}
