// SPDX-License-Identifier: MIT
//
// A semaphore on real servers: masters that are down, rights that are missing, clients of other libraries.
#include "masters.hpp"
#include "support/catch.hpp"
#include "support/code_of.hpp"
#include "support/eventually.hpp"
#include "support/redis_server.hpp"

#include <holdfast/redis.hpp>
#include <holdfast/redlock.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <string>
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
using holdfast::test::containing;
using holdfast::test::contains;
using holdfast::test::eventually;
using holdfast::test::five_masters;
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
    std::atomic<bool> got{false};
    std::jthread waiter{[&] {
        leased_permit const third{ours};
        CHECK(third.slot() == second.slot());
        got = true;
    }};
    std::this_thread::sleep_for(100ms);
    CHECK_FALSE(got);
    second.release();
    waiter.join();
    CHECK(got);
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
    std::atomic<bool> begins{false};
    std::jthread waiter{[&] {
        if (waits) begins = true;
        CHECK(eventually([&] { return begins.load(); }));
        CHECK(code_of([&] { theirs.acquire(); }, &what) == errc::misconfigured);
    }};
    if (waits) std::this_thread::sleep_for(200ms);
    server.command({"ACL", "SETUSER", "default", "-eval", "-evalsha"});
    begins = true;
    server.command({"DEL", "jobs#0"});
    if (waits) server.command({"PUBLISH", "holdfast:free:{jobs#0}", "1"});
    waiter.join();
    CHECK_THAT(what, contains("jobs#"));
    CHECK_THAT(what, contains("eval"));
}
