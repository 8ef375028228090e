// SPDX-License-Identifier: MIT
//
// An election whose servers fail, and what is seen of it.
#include "masters.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/overheard.hpp"
#include "support/proxy.hpp"
#include "support/redis_server.hpp"
#include "support/told_leaders.hpp"

#include <holdfast/election.hpp>
#include <holdfast/redis.hpp>
#include <holdfast/redlock.hpp>

#include <atomic>
#include <chrono>
#include <string>
#include <vector>

using namespace std::chrono_literals;
using holdfast::election;
using holdfast::election_observer;
using holdfast::election_options;
using holdfast::errc;
using holdfast::redis::client;
using holdfast::redlock::masters;
using holdfast::test::copies;
using holdfast::test::eventually;
using holdfast::test::lock_on_all;
using holdfast::test::proxy;
using holdfast::test::redis_fleet;
using holdfast::test::redis_server;
using holdfast::test::told_leaders;

namespace {

struct counts {
    std::atomic<int> unavailable{0};
    std::atomic<int> misconfigured{0};
    std::atomic<int> deposed{0};

    [[nodiscard]] election_options options()
    {
        return {.on_deposed = [this] { ++deposed; },
                .on_error =
                    [this](holdfast::error const& e) {
                        if (e.code() == errc::unavailable) ++unavailable;
                        if (e.code() == errc::misconfigured) ++misconfigured;
                    },
                .pause = 1ms,
                .retry = {.first = 1ms, .most = 20ms}};
    }
};

}  // namespace

TEST_CASE("a candidate lives through an outage: it reports that, and is elected after it")
{
    redis_server server;
    client one{server.url()};
    server.kill();
    holdfast::redis::mutex orders{one, "orders", {.unavailable_after = 50ms}};
    counts n;
    election leader{orders, n.options()};
    CHECK(eventually([&] { return n.unavailable >= 3; }));
    CHECK_FALSE(leader.still_leader());
    server.restart();
    CHECK(eventually([&] { return leader.still_leader(); }));
    CHECK(n.misconfigured == 0);
}

TEST_CASE("a leader is deposed in an outage by its own clock, and elected after it with a greater number")
{
    redis_server server;
    client one{server.url(), {.operation_timeout = 500ms}};
    holdfast::redis::mutex orders{one, "orders", {.ttl = 2s, .unavailable_after = 50ms}};
    counts n;
    auto options = n.options();
    options.stop_margin = 500ms;
    election leader{orders, options};
    CHECK(eventually([&] { return leader.still_leader(); }));
    auto const t = leader.term();
    server.kill();
    CHECK(eventually([&] { return !t.still_held(); }));
    CHECK(eventually([&] { return n.deposed > 0; }));
    CHECK(eventually([&] { return n.unavailable > 0; }));
    server.restart();
    CHECK(eventually([&] { return leader.still_leader(); }));
    CHECK(leader.term().fencing_token() > t.fencing_token());
}

TEST_CASE("a candidate without a right reports that, and is elected when it has the right")
{
    redis_server server;
    server.command({"ACL", "SETUSER", "app", "on", ">canary-of-the-candidate", "+@all", "&*", "~other"});
    client one{server.url("app", "canary-of-the-candidate")};
    holdfast::redis::mutex orders{one, "orders"};
    counts n;
    election leader{orders, n.options()};
    CHECK(eventually([&] { return n.misconfigured >= 2; }));
    server.command({"ACL", "SETUSER", "app", "~*"});
    CHECK(eventually([&] { return leader.still_leader(); }));
}

TEST_CASE("a minority of masters that is gone neither deposes a leader nor keeps one from being elected")
{
    redis_fleet servers{3};
    masters const fleet{servers.urls(), {.node_timeout = 5s, .restart_guard = 0ms}};
    holdfast::redlock::mutex orders{fleet, "orders", {.ttl = 15s}};
    counts n;
    election leader{orders, n.options()};
    CHECK(eventually([&] { return leader.still_leader(); }));
    auto const t = leader.term();
    servers[0].kill();
    auto const end = t.lease().expires_at();
    CHECK(eventually([&] { return t.lease().expires_at() > end; }));
    CHECK(t.still_held());
    CHECK(leader.resign());
    CHECK(eventually([&] { return leader.still_leader(); }));
    CHECK(leader.term().fencing_token() > t.fencing_token());
    CHECK(n.deposed == 1);
}

TEST_CASE("an observer that cannot ask says so, and takes it for no change; then it says what has changed")
{
    redis_server server;
    client one{server.url()};
    holdfast::redis::mutex orders{one, "orders", {.ttl = 60s}};
    election leader{orders, {.pause = 1h}};
    CHECK(eventually([&] { return leader.still_leader(); }));
    proxy way{server.port()};
    client two{way.url()};
    told_leaders told;
    election_observer const seen{two, "orders", told.options()};
    CHECK(told.leads(true));
    way.refuse();
    CHECK(told.reports(errc::unavailable));
    CHECK(told.count() == 1);
    way.pass();
    CHECK(told.recovers());
    CHECK(told.count() == 1);  // the same leader
    way.refuse();
    CHECK(told.reports(errc::unavailable));
    CHECK(leader.resign());
    CHECK(eventually([&] { return !one.holder("orders"); }));
    CHECK(told.count() == 1);
    way.pass();
    CHECK(told.leads(false));
    CHECK(told.count() == 2);
}

TEST_CASE("an observer needs a majority of the masters to say who leads, or that there is no leader")
{
    redis_fleet servers{3};
    holdfast::redlock::masters_options const options{
        .node_timeout = 10s, .connect_timeout = 1min, .restart_guard = 0ms};
    masters const fleet{servers.urls(), options};
    holdfast::redlock::mutex orders{fleet, "orders", {.ttl = 60s}};
    holdfast::redlock::mutex probe{fleet, "invoices"};
    // All are connected and know the script: so all give their votes, and not just two.
    REQUIRE(lock_on_all(servers, probe, "invoices"));
    probe.unlock();
    CHECK_FALSE(fleet.holder("orders"));
    election leader{orders, {.pause = 1h}};
    CHECK(eventually([&] { return leader.still_leader(); }));
    REQUIRE(eventually([&] { return copies(servers, "orders") == 3; }));
    std::vector<proxy> ways;
    for (auto const port : servers.ports()) ways.emplace_back(port);
    masters const there{urls(ways), options};
    told_leaders told;
    election_observer const seen{there, "orders", told.options()};
    CHECK(told.leads(true));
    ways[0].refuse();
    CHECK(eventually([&] { return seen.leader().has_value(); }));
    ways[1].refuse();
    CHECK(told.reports(errc::unavailable));
    CHECK(leader.resign());
    CHECK(eventually([&] { return !fleet.holder("orders"); }));
    CHECK(told.count() == 1);
    ways[1].pass();
    CHECK(told.leads(false));
    CHECK(told.count() == 2);
}
