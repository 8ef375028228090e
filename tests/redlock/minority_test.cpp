// SPDX-License-Identifier: MIT
//
// A minority of the masters is down, hung or refusing: nothing changes.
#include "masters.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/redis_rights.hpp"

#include <chrono>
#include <string>
#include <system_error>
#include <vector>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::errc;
using holdfast::redlock::masters;
using holdfast::redlock::mutex;
using holdfast::test::code_of;
using holdfast::test::eventually;
using holdfast::test::five_masters;
using holdfast::test::redis_fleet;

namespace {

void check_usable(five_masters& five, mutex& m, mutex& there)
{
    for (int i = 0; i < 3; ++i) {
        REQUIRE(m.try_lock_for(20s));
        CHECK(m.lease().still_held());
        CHECK_FALSE(there.try_lock());
        std::error_code ec;
        CHECK(m.extend(1h, ec));
        CHECK_FALSE(ec);
        CHECK(m.lease().remaining() > 30min);
        m.unlock(ec);
        CHECK_FALSE(ec);
        CHECK(eventually([&] { return five.copies("orders") == 0; }));
        REQUIRE(there.try_lock_for(20s));
        there.unlock();
    }
}

}  // namespace

TEST_CASE("with two of five masters down lock, extend and unlock succeed", "[lesson-5]")
{
    bool const used_before = GENERATE(true, false);
    five_masters five;
    auto other = masters{five.servers.urls(), five_masters::options()};
    mutex m{five.client, "orders"};
    mutex there{other, "orders"};
    if (used_before) check_usable(five, m, there);
    five.servers.kill(0);
    five.servers.kill(3);
    check_usable(five, m, there);
}

TEST_CASE("with two of five masters hung lock, extend and unlock succeed", "[lesson-5]")
{
    bool const used_before = GENERATE(true, false);
    five_masters five;
    auto other = masters{five.servers.urls(), five_masters::options()};
    mutex m{five.client, "orders"};  // which needs each of the three that are left, and waits for no other
    mutex there{other, "orders"};
    if (used_before) check_usable(five, m, there);
    five.servers.pause(1);
    five.servers.pause(2);
    check_usable(five, m, there);
    five.servers.resume(1);
    five.servers.resume(2);
    check_usable(five, m, there);
}

TEST_CASE("masters that die while a lock is held do not end its lease", "[lesson-5]")
{
    five_masters five;
    mutex m{five.client, "orders", {.ttl = 20s}};
    REQUIRE(five.lock_on_all(m, "orders"));
    auto const lease = m.lease();
    five.servers.kill(2);
    five.servers.pause(4);
    for (int renewals = 0; renewals < 2; ++renewals) {  // the first may have been under way
        auto const until = lease.expires_at();
        REQUIRE(eventually([&] { return lease.expires_at() != until; }));
        CHECK(lease.still_held());
    }
    std::error_code ec;
    m.unlock(ec);
    CHECK_FALSE(ec);
}

TEST_CASE("a minority that refuses the password changes nothing")
{
    redis_fleet good{3};
    redis_fleet bad{2, {.password = "right"}};
    auto urls = good.urls();
    for (auto const& server : {&bad[0], &bad[1]}) urls.push_back(server->url("", "wrong"));
    masters client{urls, five_masters::options()};
    mutex m{client, "orders"};
    for (int i = 0; i < 3; ++i) {
        CHECK(m.try_lock_for(1min));
        m.extend(1h);
        std::error_code ec;
        m.unlock(ec);
        CHECK_FALSE(ec);
    }
}

TEST_CASE("a minority without memory changes nothing")
{
    five_masters five;
    for (std::size_t i : {0U, 4U}) five.servers[i].command({"CONFIG", "SET", "maxmemory", "1"});
    mutex m{five.client, "orders"};
    for (int i = 0; i < 3; ++i) {
        CHECK(m.try_lock_for(1min));
        CHECK(five.copies("orders") == 3);
        std::error_code ec;
        m.unlock(ec);
        CHECK_FALSE(ec);
    }
}

TEST_CASE("a minority with a key of another type changes nothing")
{
    five_masters five;
    for (std::size_t i : {1U, 3U}) five.servers[i].command({"LPUSH", "orders", "x"});
    mutex m{five.client, "orders"};
    CHECK(m.try_lock());
    m.unlock();
    five.servers[0].command({"LPUSH", "orders", "x"});
    CHECK_FALSE(m.try_lock());
    CHECK(eventually([&] { return five.copies("orders") == 3; }));
}

TEST_CASE("of four masters one may be down, of two none")
{
    redis_fleet four{4};
    masters client{four.urls(), five_masters::options()};
    mutex m{client, "orders"};
    CHECK(m.try_lock());
    m.unlock();
    four.kill(1);
    CHECK(m.try_lock_for(1min));
    m.unlock();
    four.kill(2);
    mutex another{client, "invoices"};  // the first may refuse an attempt, so that clients that poll get a turn
    CHECK(code_of([&] { (void)another.try_lock(); }) == errc::unavailable);

    redis_fleet two{2};
    masters pair{two.urls(), five_masters::options()};
    mutex p{pair, "orders"};
    CHECK(p.try_lock());
    p.unlock();
    two.kill(0);
    mutex q{pair, "invoices"};
    CHECK(code_of([&] { (void)q.try_lock(); }) == errc::unavailable);
}

TEST_CASE("one master is enough where it is the only one")
{
    redis_fleet one{1};
    masters client{one.urls(), five_masters::options()};
    mutex m{client, "orders"};
    CHECK(m.try_lock());
}

TEST_CASE("a user with no more rights than Redlock needs can do everything")
{
    redis_fleet servers{
        5, {.config = {holdfast::test::least_rights("secret", "orders*", holdfast::test::redlock_commands)}}};
    auto const urls = servers.urls("app", "secret");
    holdfast::redlock::masters_options const options{.node_timeout = 6s, .connect_timeout = 1min, .restart_guard = 13s};
    masters here{urls, options};
    masters elsewhere{urls, options};
    mutex m{here, "orders/42", {.ttl = 12s}};
    mutex there{elsewhere, "orders/42", {.ttl = 12s}};
    REQUIRE(there.try_lock_for(1min));  // the guard has passed for both, then
    there.unlock();
    for (int i = 0; i < 3; ++i) {
        REQUIRE(m.try_lock_for(1min));
        CHECK_FALSE(there.try_lock_for(100ms));
        std::error_code ec;
        CHECK(m.extend(13s, ec));
        m.unlock(ec);
        CHECK_FALSE(ec);
        CHECK(there.try_lock_for(1min));
        there.unlock();
    }
}
