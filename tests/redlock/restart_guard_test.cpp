// SPDX-License-Identifier: MIT
#include "masters.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/proxy.hpp"
#include "support/refusal.hpp"

#include <chrono>
#include <future>
#include <string>
#include <thread>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::errc;
using holdfast::redlock::masters;
using holdfast::redlock::mutex;
using holdfast::test::code_of;
using holdfast::test::containing;
using holdfast::test::contains;
using holdfast::test::eventually;
using holdfast::test::five_masters;
using holdfast::test::proxy;
using holdfast::test::redis_fleet;

TEST_CASE("masters that have just been started have no vote until the guard has passed")
{
    five_masters five;
    masters cautious{five.servers.urls(), {.node_timeout = 10s, .connect_timeout = 1min, .restart_guard = 1h}};
    mutex m{cautious, "orders"};
    std::string what;
    auto const code = code_of([&] { (void)m.try_lock(); }, &what);
    CHECK(code == errc::unavailable);
    CHECK(code == holdfast::redis::errc::restarted_recently);
    CHECK_THAT(what, contains("no quorum of 5 masters"));
    CHECK_THAT(what, contains("no vote for another ") && contains("restart_guard is 3600000 ms"));
    CHECK(eventually([&] { return five.copies("orders") == 0; }));
    masters bold{five.servers.urls(), {.node_timeout = 1000ms, .restart_guard = 2500ms}};
    mutex n{bold, "orders", {.ttl = 2500ms}};
    CHECK(n.try_lock_for(30s));
}

TEST_CASE("a clock that was seen so late that it may be out of line is looked at again")
{
    redis_fleet servers{3};
    proxy way{servers[0].port()};
    masters client{{way.url(), servers[1].url(), servers[2].url()},
                   {.node_timeout = 2s, .connect_timeout = 1min, .restart_guard = 4s}};
    mutex m{client, "orders", {.ttl = 4s, .unavailable_after = 10min}};
    way.delay(0ms, 3s);
    auto locked =
        std::async(std::launch::async, [&] { m.lock(); });  // two are enough, when they have run for long enough
    CHECK(eventually([&] { return way.requests() >= 2; }));
    std::this_thread::sleep_for(
        100ms);  // the answers to the greeting are under way, and late; what comes behind them is not
    way.delay(0ms, 0ms);
    locked.get();
    m.unlock();
    servers[1].kill();
    CHECK(m.try_lock_for(1min));
}

TEST_CASE("clocks that were out of line and have been set right are looked at again, also by who waits for them")
{
    redis_fleet servers{3};
    proxy way{servers[1].port()};
    proxy other{servers[2].port()};
    way.spoil_next_reply("*2\r\n$10\r\n1000000000\r\n$1\r\n0\r\n", {.matches = containing("TIME")});    // in 2001
    other.spoil_next_reply("*2\r\n$10\r\n1200000000\r\n$1\r\n0\r\n", {.matches = containing("TIME")});  // in 2008
    masters client{{servers[0].url(), way.url(), other.url()},
                   {.node_timeout = 5s, .connect_timeout = 1min, .restart_guard = 10s}};
    mutex m{client, "orders", {.ttl = 10s, .unavailable_after = 5min}};
    m.lock();
    CHECK(way.struck() == 1);
    CHECK(other.struck() == 1);
    m.unlock();
    CHECK(holdfast::test::lock_on_all(servers, m, "orders", 5min));
}

TEST_CASE("masters have no vote for a minute after their start, however short the ttls of a client are")
{
    redis_fleet servers{3};
    auto const uptime = [&] {
        auto const info = servers[0].command({"INFO", "server"}).text;
        return std::stol(info.substr(info.find("uptime_in_seconds:") + 18));
    };
    std::string what;
    std::error_code code;
    REQUIRE(eventually(
        [&] {  // again on a machine that stood still meanwhile, or where a master had no turn for a second
            for (std::size_t i = 0; i < 3; ++i) servers.restart(i);
            masters client{servers.urls(), {.node_timeout = 1s, .connect_timeout = 1min}};
            mutex m{client, "orders", {.ttl = 2s}};
            if (!eventually([&] { return uptime() >= 5; })) return false;
            code = code_of([&] { (void)m.try_lock(); }, &what);
            return code != holdfast::redis::errc::no_answer && uptime() < 50;
        },
        10min));
    CHECK(code == holdfast::redis::errc::restarted_recently);
    CHECK_THAT(what, contains("no vote for another ") && contains("it was started ") &&
                         contains("restart_guard is 60000 ms"));
}

TEST_CASE("a ttl of a minute is covered by default, a longer one is refused with both values and the option")
{
    masters client{{"redis://a", "redis://b", "redis://c"}};
    CHECK_NOTHROW(mutex{client, "orders", {.ttl = 60s}});
    std::string what;
    CHECK(code_of([&] { mutex const m{client, "orders", {.ttl = 60'001ms}}; }, &what) == errc::misconfigured);
    CHECK_THAT(what, contains("ttl is 60001 ms") && contains("restart_guard, 60000 ms"));
}

TEST_CASE("a lease is not extended to more than the guard covers, unless it is switched off")
{
    five_masters five;
    masters client{five.servers.urls(), {.node_timeout = 2s, .connect_timeout = 1min, .restart_guard = 10s}};
    mutex m{client, "orders", {.ttl = 8s}};
    REQUIRE(m.try_lock_for(5min));
    std::error_code ec;
    CHECK(m.extend(10s, ec));
    CHECK_FALSE(m.extend(10'001ms, ec));
    CHECK(ec == errc::misconfigured);
    CHECK_FALSE(m.extend(3999ms, ec));  // less than twice what a master is given to answer
    CHECK(ec == errc::misconfigured);
    std::string what;
    CHECK(code_of([&] { m.extend(10'001ms); }, &what) == errc::misconfigured);
    CHECK_THAT(what, contains("orders") && contains("10001 ms") && contains("restart_guard, 10000 ms"));
    CHECK(code_of([&] { m.extend(3999ms); }, &what) == errc::misconfigured);
    CHECK_THAT(what, contains("3999 ms") && contains("twice the client's node_timeout, 2000 ms"));
    mutex longer{client, "invoices", {.ttl = 9s}};  // whatever other locks of this client are like
    CHECK_FALSE(m.extend(10'001ms, ec));
    mutex unguarded{five.client, "unguarded"};
    REQUIRE(unguarded.try_lock_for(1min));
    CHECK(unguarded.extend(1h, ec));
}

TEST_CASE("a guard that somebody chose has to cover every lease")
{
    five_masters five;
    masters client{five.servers.urls(), {.node_timeout = 1000ms, .restart_guard = 2s}};
    std::string what;
    CHECK(code_of([&] { mutex const m{client, "orders", {.ttl = 2001ms}}; }, &what) == errc::misconfigured);
    CHECK_THAT(what, contains("ttl is 2001 ms") && contains("restart_guard"));
    mutex m{client, "orders", {.ttl = 2s}};
    std::error_code ec;
    CHECK(eventually([&] {  // once more where the lease is over before
        REQUIRE(m.try_lock_for(1min));
        CHECK_FALSE(m.extend(2001ms, ec));
        m.unlock();
        return ec != errc::lease_lost;
    }));
    CHECK(ec == errc::misconfigured);
}

TEST_CASE("a master that was restarted empty does not help to grant a lock that is still held")
{
    five_masters five;
    masters client{five.servers.urls(), {.node_timeout = 1000ms, .restart_guard = 10s}};
    masters other{five.servers.urls(), {.node_timeout = 1000ms, .restart_guard = 10s}};
    mutex m{client, "orders", {.ttl = 10s, .renew = false}};  // a renewal would be refused by three
    mutex rival{other, "orders", {.ttl = 10s}};
    REQUIRE(five.lock_on_all(m, "orders"));
    for (std::size_t i : {0U, 1U}) five.servers[i].command({"DEL", "orders"});  // the lock is on three of them only
    five.servers.restart(2);                                                    // one of which forgets it
    CHECK(m.lease().still_held());
    bool taken = false;
    auto const code = code_of([&] { taken = rival.try_lock(); });
    CHECK((!code || code == errc::unavailable));
    CHECK_FALSE(taken);
    CHECK(eventually([&] { return five.copies("orders") <= 2; }));
}

TEST_CASE("without the guard such a master does help: the control")
{
    five_masters five;
    auto other = masters{five.servers.urls(), five_masters::options()};
    mutex m{five.client, "orders", {.ttl = 1h, .renew = false}};
    mutex rival{other, "orders", {.ttl = 1h}};
    REQUIRE(five.lock_on_all(m, "orders"));
    for (std::size_t i : {0U, 1U}) five.servers[i].command({"DEL", "orders"});
    five.servers.restart(2);
    CHECK(m.lease().still_held());
    CHECK(rival.try_lock_for(20s));
    CHECK(rival.lease().fencing_token() > m.lease().fencing_token());
}

TEST_CASE("a set of masters that cannot be one is refused before any I/O")
{
    auto const refusal = [](std::vector<std::string> const& urls,
                            holdfast::redlock::masters_options const& options = {}) {
        return holdfast::test::refusal([&] { masters const m{urls, options}; });
    };
    CHECK_THAT(refusal({}), contains("empty"));
    CHECK_THAT(refusal({"redis://a", "redis://b", "redis://a:6379"}), contains("redis://a:6379"));
    CHECK_THAT(refusal({"redis://a/1", "redis://u:secret@A:6379/2"}), contains("twice") && !contains("secret"));
    CHECK_THAT(refusal({"unix:///run/a", "unix:///run/a?db=1"}), contains("twice"));
    CHECK_THAT(refusal({"redis://a", "http://b"}), contains("scheme"));
    CHECK_THAT(refusal({"redis://a"}, {.node_timeout = 0ms}), contains("node_timeout"));
    CHECK_THAT(refusal({"redis://a"}, {.connect_timeout = 0ms}), contains("connect_timeout"));
    CHECK_THAT(refusal({"redis://a"}, {.restart_guard = -1ms}), contains("restart_guard"));
    std::vector<std::string> many;
    for (int i = 0; i < 32; ++i) many.push_back("redis://host" + std::to_string(i));
    CHECK_THAT(refusal(many), contains("32"));
    many.pop_back();
    CHECK_FALSE(code_of([&] { masters const m{many}; }));
    CHECK_FALSE(code_of([&] { masters const m{{"redis://a", "redis://b", "redis://c", "redis://d"}}; }));
}

TEST_CASE("a ttl below twice the node timeout is refused")
{
    masters client{{"redis://a", "redis://b", "redis://c"}, {.node_timeout = 50ms}};
    std::string what;
    CHECK(code_of([&] { mutex const m{client, "orders", {.ttl = 99ms}}; }, &what) == errc::misconfigured);
    CHECK_THAT(what, contains("ttl"));
    CHECK_FALSE(code_of([&] { mutex const m{client, "orders", {.ttl = 100ms}}; }));
}
