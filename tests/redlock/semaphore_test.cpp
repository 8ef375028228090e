// SPDX-License-Identifier: MIT
//
// A semaphore on real servers: masters that are down, rights that are missing, clients of other libraries.
#include "masters.hpp"
#include "support/catch.hpp"
#include "support/code_of.hpp"
#include "support/connection.hpp"
#include "support/eventually.hpp"
#include "support/first_waiter.hpp"
#include "support/redis_server.hpp"

#include <holdfast/redis.hpp>
#include <holdfast/redlock.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>
#include <vector>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::errc;
using holdfast::leased_permit;
using holdfast::lock_options;
using holdfast::redlock::semaphore;
using holdfast::test::code_of;
using holdfast::test::connection;
using holdfast::test::containing;
using holdfast::test::contains;
using holdfast::test::eventually;
using holdfast::test::first_waiter;
using holdfast::test::five_masters;
using holdfast::test::redis_fleet;
using holdfast::test::redis_server;

static_assert(std::is_base_of_v<holdfast::semaphore, semaphore>);

TEST_CASE("a semaphore goes on with two of five masters down, and is unavailable with three")
{
    five_masters five;
    lock_options const options{.ttl = 30s, .unavailable_after = 5min};
    holdfast::redlock::masters other{five.servers.urls(), five_masters::options()};
    semaphore ours{five.client, "jobs", 2, options};
    semaphore theirs{other, "jobs", 2, options};
    leased_permit first{ours};
    five.servers.kill(0);
    five.servers.kill(3);
    leased_permit second{theirs, 1min};
    CHECK(second);
    CHECK(second.slot() != first.slot());
    CHECK_FALSE(ours.try_acquire_for(50ms));
    auto const slot = second.slot();
    std::atomic<bool> got{false};
    std::size_t third_slot = 2;  // none
    std::jthread waiter{[&] {
        leased_permit const third{ours};
        third_slot = third.slot();
        got = true;
    }};
    std::this_thread::sleep_for(100ms);
    CHECK_FALSE(got);
    second.release();
    waiter.join();
    CHECK(third_slot == slot);
    five.servers.kill(1);
    auto few = five.impatient();
    semaphore none{few, "jobs", 2, {.unavailable_after = 200ms}};
    std::string what;
    CHECK(code_of([&] { static_cast<void>(none.try_acquire()); }) == errc::unavailable);
    CHECK(code_of([&] { static_cast<void>(none.try_acquire_for(200ms)); }) == errc::unavailable);
    CHECK(code_of([&] { none.acquire(); }, &what) == errc::unavailable);
    CHECK_THAT(what, contains("jobs#"));
    CHECK_THAT(what, contains("127.0.0.1"));
}

TEST_CASE("a semaphore outlasts an outage in which a minority of the masters refuses the password")
{
    redis_fleet two{2};
    redis_server locked{{.password = "right"}};
    holdfast::redlock::masters client{{locked.url("", "wrong"), two[0].url(), two[1].url()}, five_masters::options()};
    two.kill(0);
    semaphore jobs{client, "jobs", 2, {.ttl = 30s, .unavailable_after = 5min}};
    CHECK(code_of([&] { static_cast<void>(jobs.try_acquire()); }) == errc::unavailable);
    std::atomic<bool> over{false};
    std::error_code why;
    std::jthread waiter{[&] {
        why = code_of([&] { jobs.acquire(); });
        over = true;
    }};
    std::this_thread::sleep_for(300ms);
    CHECK_FALSE(over);
    two.restart(0);
    waiter.join();
    CHECK_FALSE(why);
}

TEST_CASE("the slots of a semaphore are keys that others may take")
{
    redis_server server;
    holdfast::redis::client redis{server.url()};
    holdfast::redis::semaphore jobs{redis, "{jobs}", 2, {.unavailable_after = 1min}};
    server.command({"SET", "{jobs}#1", "another client's", "NX", "PX", "60000"});
    leased_permit const permit{jobs};
    CHECK(permit.slot() == 0);
    CHECK_FALSE(jobs.try_acquire_for(20ms));
    CHECK(server.command({"EXISTS", "{jobs}#0"}).integer == 1);
    server.command({"DEL", "{jobs}#1"});
    CHECK(jobs.try_acquire_for(1min));
}

TEST_CASE("a right that is missing is told at once, also in a wait, in the words of the server")
{
    redis_server server;
    holdfast::redis::client redis{server.url(), {.connect_timeout = 1min}};
    holdfast::redis::semaphore jobs{redis, "jobs", 2, {.ttl = 1h, .unavailable_after = 1h}};
    jobs.acquire();
    jobs.acquire();
    holdfast::redis::client other{server.url(), {.operation_timeout = 1min, .connect_timeout = 1min}};
    holdfast::redis::semaphore theirs{other, "jobs", 2, {.ttl = 1h, .unavailable_after = 1h}};
    bool const waits = GENERATE(false, true);
    std::string what;
    std::error_code why;
    auto const acquire = [&] { why = code_of([&] { theirs.acquire(); }, &what); };
    std::jthread waiter;
    holdfast::test::waiter_call call;
    if (waits) {
        waiter = std::jthread{acquire};
        connection ask{server.port()};
        REQUIRE(eventually([&] { return bool{(call = first_waiter(ask, "jobs#0"))}; }));
    }
    server.command({"ACL", "SETUSER", "default", "-eval", "-evalsha"});
    server.command({"DEL", "jobs#0"});
    if (waits) {
        CHECK(server.command({"PUBLISH", call.channel, call.text}).integer == 1);
        waiter.join();
    } else {
        acquire();
    }
    CHECK(why == errc::misconfigured);
    CHECK_THAT(what, contains("jobs#"));
    CHECK_THAT(what, contains("eval"));
}

TEST_CASE("a number of permits on a minority of the masters is no obstacle, and on a majority it is told")
{
    five_masters five;
    holdfast::redlock::masters other{five.servers.urls(), five_masters::options()};
    semaphore jobs{five.client, "jobs", 2, {.ttl = 30s, .unavailable_after = 5min}};
    for (std::size_t i : {0U, 3U}) five.servers[i].command({"SET", "jobs#max", "7", "PX", "600000"});
    leased_permit first{jobs, 2min};
    CHECK(first);
    semaphore seven{other, "jobs", 7, {.ttl = 30s, .unavailable_after = 5min}};
    std::string what;
    CHECK(code_of([&] { seven.acquire(); }, &what) == errc::misconfigured);
    CHECK_THAT(what, contains("is 2"));
    CHECK(first.still_held());
    first.release();
    for (auto& one : five.servers) one.command({"SET", "jobs#max", "9", "PX", "600000"});
    CHECK(code_of([&] { jobs.acquire(); }, &what) == errc::misconfigured);
    CHECK_THAT(what, contains("is 9"));
    CHECK(eventually([&] { return five.copies("jobs#0") + five.copies("jobs#1") == 0; }));  // rolled back
}

TEST_CASE("permits that are held are counted with two of five masters down, and what may be held is, too")
{
    five_masters five;
    semaphore jobs{five.client, "jobs", 3, {.ttl = 1h, .unavailable_after = 5min}};
    leased_permit one{jobs, 2min};
    CHECK(eventually([&] {
        std::error_code ec;  // a master that was late is asked again
        return one.extend(1h, ec) && five.copies("jobs#" + std::to_string(one.slot())) == 5;
    }));
    CHECK(jobs.permits_in_use() == 1);
    auto const another = "jobs#" + std::to_string((one.slot() + 1) % 3);
    five.servers[1].command({"SET", another, "of a client that has no majority"});
    CHECK(jobs.permits_in_use() == 1);
    five.servers.kill(0);
    five.servers.kill(3);
    CHECK(jobs.permits_in_use() == 2);  // those that are down may have that slot, too
    five.servers[1].command({"DEL", another});
    CHECK(jobs.permits_in_use() == 1);
    five.servers.kill(1);
    std::error_code ec;
    CHECK(jobs.permits_in_use(ec) == 0);
    CHECK(ec == errc::unavailable);
}

TEST_CASE("the number of permits lasts as long as the leases, and is no obstacle for a user without a right to it")
{
    redis_server server;
    holdfast::redis::client redis{server.url(), {.operation_timeout = 10s, .connect_timeout = 1min}};
    holdfast::redis::semaphore jobs{redis, "jobs", 2, {.ttl = 1h, .unavailable_after = 1h}};
    leased_permit one{jobs};
    CHECK(server.command({"GET", "jobs#max"}).text == "2");
    CHECK(server.command({"PTTL", "jobs#max"}).integer >= server.command({"PTTL", "jobs#0"}).integer);
    one.extend(5h);
    CHECK(server.command({"PTTL", "jobs#max"}).integer > 4LL * 3'600'000);
    server.command({"DEL", "jobs#max"});  // a server that lost it
    one.extend(6h);
    CHECK(server.command({"GET", "jobs#max"}).text == "2");
    one.release();
    server.command({"SET", "jobs#max", "2"});  // a person says so, for good
    one = leased_permit{jobs};
    CHECK(server.command({"PTTL", "jobs#max"}).integer == -1);
    server.command({"DEL", "jobs#max"});
    server.command({"RPUSH", "jobs#max", "a list"});
    std::string what;
    CHECK(code_of([&] { jobs.acquire(); }, &what) == errc::misconfigured);
    CHECK_THAT(what, contains("something else"));
    server.command({"DEL", "jobs#max"});

    server.command({"ACL", "SETUSER", "few", "on", ">few", "~jobs#0", "~jobs#1", "~jobs#2", "~jobs#3", "~jobs#4",
                    "~holdfast:*", "&*", "+@all"});
    holdfast::redis::client few{server.url("few", "few"), {.connect_timeout = 1min}};
    holdfast::redis::semaphore theirs{few, "jobs", 5, {.ttl = 1h, .unavailable_after = 1h}};
    leased_permit const two{theirs, 1min};
    CHECK(two.slot() != one.slot());
    CHECK(server.command({"EXISTS", "jobs#max"}).integer == 0);
}

TEST_CASE("a server without memory grants no permit, and keeps those that are held")
{
    redis_server server;
    holdfast::redis::client redis{server.url(), {.operation_timeout = 10s, .connect_timeout = 1min}};
    bool const fencing = GENERATE(true, false);
    holdfast::redis::semaphore jobs{redis, "jobs", 3, {.ttl = 1h, .fencing = fencing, .unavailable_after = 100ms}};
    bool const begun = GENERATE(true, false);
    std::optional<leased_permit> held;
    if (begun) held.emplace(jobs);
    // A script that has written once is refused nothing more, and one that finds a waiter that is gone writes at once.
    if (GENERATE(true, false))
        for (int slot = 0; slot < 3; ++slot)
            server.command({"ZADD", "holdfast:queue:{jobs#" + std::to_string(slot) + "}", "1", std::string(21, '0')});
    server.command({"CONFIG", "SET", "maxmemory", "1"});
    bool granted = false;
    auto const code = code_of([&] { granted = jobs.try_acquire(); });
    CHECK_FALSE(granted);
    CHECK(server.command({"EXISTS", "jobs#0", "jobs#1", "jobs#2"}).integer == (begun ? 1 : 0));
    if (!begun) CHECK(code == holdfast::redis::errc::out_of_memory);
    if (!begun) return;
    std::error_code ec;
    CHECK(held->extend(5h, ec));
    CHECK(server.command({"PTTL", "jobs#max"}).integer > 4LL * 3'600'000);
}

TEST_CASE("a count of permits does not depend on what the keys of the slots hold")
{
    redis_server server;
    holdfast::redis::client redis{server.url(), {.connect_timeout = 1min}};
    holdfast::redis::semaphore jobs{redis, "{jobs}", 1'000, {.unavailable_after = 1min}};
    CHECK(jobs.permits_in_use() == 0);
    server.command({"SET", "{jobs}#999", ""});
    server.command({"RPUSH", "{jobs}#10", "a list"});
    server.command({"SET", "{jobs}#1000", "not one of them"});
    CHECK(jobs.permits_in_use() == 2);
}

TEST_CASE("a permit is renewed, told and released with a record of its holder, too")
{
    redis_server server;
    holdfast::redis::client redis{
        server.url(), {.operation_timeout = 10s, .connect_timeout = 1min, .label = "of ours"}};
    bool const fencing = GENERATE(true, false);
    holdfast::redis::semaphore jobs{redis, "jobs", 2, {.ttl = 1h, .fencing = fencing, .unavailable_after = 1h}};
    leased_permit one{jobs};
    auto const holder = redis.holder("jobs#" + std::to_string(one.slot()));
    REQUIRE(holder);
    CHECK(holder->label == "of ours");
    CHECK(server.command({"GET", "jobs#max"}).text == "2");
    one.extend(2h);
    std::error_code ec;
    one.release(ec);
    CHECK_FALSE(ec);
    holdfast::redis::semaphore three{redis, "jobs", 3, {.ttl = 1h, .fencing = fencing, .unavailable_after = 1h}};
    CHECK(code_of([&] { three.acquire(); }) == errc::misconfigured);
}
