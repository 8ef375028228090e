// SPDX-License-Identifier: MIT
//
// A lock that was taken lately is taken by two plain commands: SET, and INCRBY of the fence. Whatever becomes of the second one, the tokens
// increase.
#include "masters.hpp"
#include "redis/observed.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/proxy.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

using namespace std::chrono_literals;
using holdfast::redlock::masters;
using holdfast::redlock::mutex;
using holdfast::test::calls;
using holdfast::test::containing;
using holdfast::test::eventually;
using holdfast::test::five_masters;
using holdfast::test::take_and_free;

namespace {

std::string const fence = "holdfast:fence:{orders}";

/// Returns: how many scripts a server has run.
long scripts(holdfast::test::redis_server& server) { return calls(server, "evalsha") + calls(server, "eval"); }

/// Effects: has `section` take and free the lock `n` times. Returns: how many scripts a server has run each time, on average; less than two where
/// it went by scripts only, as one that is slow may not have been asked.
double scripts_each(five_masters& five, int n, std::function<void()> const& section)
{
    long sum = 0;
    for (auto& one : five.servers) sum -= scripts(one);
    for (int i = 0; i < n; ++i) section();
    for (auto& one : five.servers) sum += scripts(one);
    return static_cast<double>(sum) / (5.0 * n);
}

std::vector<std::uint64_t> counters(five_masters& five)
{
    std::vector<std::uint64_t> all;
    for (auto const& one : five.servers.command({"GET", fence})) all.push_back(one.text.empty() ? 0 : std::stoull(one.text));
    return all;
}

/// Effects: takes and frees the lock until the client knows of every server's counter.
void warm(five_masters& five, mutex& m)
{
    REQUIRE(eventually([&] { return scripts_each(five, 10, [&] { take_and_free(m); }) < 1.3; }));
}

}  // namespace

TEST_CASE("a lock that is taken again takes a script for its release only")
{
    five_masters five;
    mutex m{five.client, "orders"};
    take_and_free(m);
    warm(five, m);
}

TEST_CASE("a mutex that is made anew for each use takes a script for its release only, too")
{
    five_masters five;
    CHECK(eventually([&] {
        return scripts_each(five, 10, [&] {
            mutex m{five.client, "orders"};
            take_and_free(m);
        }) < 1.3;
    }));
}

TEST_CASE("counters that are lost behind the client's back are made anew by the clock, with an end")
{
    five_masters five;
    mutex m{five.client, "orders"};
    take_and_free(m);
    warm(five, m);
    auto const lost = GENERATE(std::size_t{1}, std::size_t{3}, std::size_t{5});
    auto last = take_and_free(m);
    for (std::size_t i = 0; i < lost; ++i) five.servers[i].command({"DEL", fence});
    for (int i = 0; i < 3; ++i) {
        auto const token = take_and_free(m);
        CHECK(token > last);
        last = token;
    }
    CHECK(eventually([&] {  // one whose answer nobody waited for is mended when it is asked next
        take_and_free(m);
        auto const left = five.servers.command({"PTTL", fence});
        return std::all_of(left.begin(), left.end(), [](auto const& r) { return r.integer > 3'500'000; });
    }));
    auto const all = counters(five);
    CHECK(std::count_if(all.begin(), all.end(), [&](auto c) { return c >= last; }) >= 3);
}

TEST_CASE("who is refused again and again does not drive the counters on")
{
    five_masters five;
    mutex m{five.client, "orders"};
    take_and_free(m);
    warm(five, m);
    masters other{five.servers.urls(), five_masters::options()};
    mutex holder{other, "orders", {.ttl = 60s}};
    take_and_free(holder);
    warm(five, holder);  // over connections that stand: nobody is left out
    REQUIRE(five.lock_on_all(holder, "orders"));
    auto const before = counters(five);
    for (int i = 0; i < 50; ++i) CHECK_FALSE(m.try_lock());
    auto const after = counters(five);
    for (std::size_t i = 0; i < 5; ++i) CHECK(after[i] - before[i] <= 64);
    auto const last = holder.lease().fencing_token();
    holder.unlock();
    CHECK(take_and_free(m) > last);
    CHECK(take_and_free(m) > last);
}

TEST_CASE("a lock whose counter does not answer is taken with a token that is greater, or is not left behind")
{
    five_masters five;
    std::vector<holdfast::test::proxy> ways;
    std::vector<std::string> urls;
    for (auto const& one : five.servers) urls.push_back(ways.emplace_back(one.port()).url());
    masters client{urls, {.node_timeout = 3s, .connect_timeout = 1min, .restart_guard = 0ms}};  // a round without an answer takes as long
    mutex m{client, "orders", {.unavailable_after = 5min}};
    take_and_free(m);
    auto const how = GENERATE(0, 1, 2);
    CHECK(eventually([&] {  // a machine that stood still for a second has the script asked
        warm(five, m);
        auto const last = take_and_free(m);
        std::vector<int> before;
        for (auto& way : ways) {
            way.heal();
            before.push_back(way.struck());
            if (how == 0) way.answer_next_request("-ERR increment or decrement would overflow\r\n", {.matches = containing("INCRBY")});
            if (how == 1) way.drop_next_request({.matches = containing("INCRBY")});
            if (how == 2) way.swallow_next_reply({.matches = containing("INCRBY")});
        }
        CHECK(take_and_free(m) > last);
        int struck = 0;
        for (std::size_t i = 0; i < ways.size(); ++i) struck += ways[i].struck() > before[i] ? 1 : 0;
        return struck >= 3;
    }));
    CHECK(eventually([&] { return five.copies("orders") == 0; }));
}
