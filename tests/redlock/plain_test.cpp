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

/// A client that looks at clocks and restarts, as is the default, of masters that have run for long enough; they are behind proxies.
struct guarded_masters {
    five_masters five;
    std::vector<holdfast::test::proxy> ways;
    masters client{make_ways(), {.node_timeout = 1s, .connect_timeout = 1min, .restart_guard = guard}};
    int names = 0;

    static constexpr auto guard = 2s;

    guarded_masters()
    {
        mutex warm{client, "warm", {.ttl = guard, .unavailable_after = 1min}};
        REQUIRE(holdfast::test::lock_on_all(five.servers, warm, "warm"));
        warm.unlock();
    }

    std::vector<std::string> make_ways()
    {
        std::vector<std::string> urls;
        for (auto& one : five.servers) urls.push_back(ways.emplace_back(one.port()).url());
        return urls;
    }

    mutex new_lock() { return mutex{client, "orders/" + std::to_string(++names), {.ttl = guard, .unavailable_after = 1min}}; }
    [[nodiscard]] std::string name() const { return "orders/" + std::to_string(names); }
    [[nodiscard]] std::string counter() const { return "holdfast:fence:{" + name() + "}"; }

    void take_new_lock()
    {
        auto m = new_lock();
        take_and_free(m);
    }
};

std::vector<std::uint64_t> counters(five_masters& five)
{
    std::vector<std::uint64_t> all;
    for (auto const& one : five.servers.command({"GET", fence})) all.push_back(one.text.empty() ? 0 : std::stoull(one.text));
    return all;
}

/// Effects: takes and frees the lock until the client knows of every server's counter. That may take a ttl: a connection that breaks when nobody
/// waits for it is made again by whoever comes next, so a key may be left on a minority, and those are asked by the script until it is gone.
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
    CHECK(eventually([&] {  // a machine that stood still for a second has the script asked; a round that begins again may last for a ttl, see above
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
    }, 5min));
    CHECK(eventually([&] { return five.copies("orders") == 0; }));
}

TEST_CASE("the first lock of a name takes a script for its release only, and its counters have an end")
{
    guarded_masters all;
    CHECK(eventually([&] { return scripts_each(all.five, 10, [&] { all.take_new_lock(); }) < 1.3; }));
    CHECK(eventually([&] {
        all.take_new_lock();
        auto const left = all.five.servers.command({"PTTL", all.counter()});
        return std::all_of(left.begin(), left.end(), [](auto const& r) { return r.integer > 3'500'000 && r.integer < 4'200'000; });
    }));
}

TEST_CASE("the first lock of a name that others have locked counts on from their tokens, without a script for it")
{
    guarded_masters all;
    masters others{all.five.servers.urls(), {.node_timeout = 1s, .connect_timeout = 1min, .restart_guard = guarded_masters::guard}};
    bool increase = true;
    CHECK(eventually([&] {
        return scripts_each(all.five, 10, [&] {
            auto m = all.new_lock();
            mutex another{others, all.name(), {.ttl = guarded_masters::guard, .unavailable_after = 1min}};
            auto const first = take_and_free(another);
            all.five.servers.command({"INCRBY", all.counter(), "1000000"});
            increase = increase && take_and_free(m) > first + 1'000'000;
        }) < 2.6;  // two for the releases
    }));
    CHECK(increase);
}

TEST_CASE("masters that do not know PXAT make counters by the script")
{
    guarded_masters all;
    for (auto& way : all.ways) way.answer_next_request("-ERR syntax error\r\n", {.matches = containing("PXAT"), .times = 1000});
    for (int i = 0; i < 5; ++i) {
        auto m = all.new_lock();
        auto const token = take_and_free(m);
        CHECK(take_and_free(m) > token);
        CHECK(eventually([&] {
            auto const counters = all.five.servers.command({"PTTL", all.counter()});
            return std::count_if(counters.begin(), counters.end(), [](auto const& r) { return r.integer > 3'500'000; }) >= 3;
        }));
    }
    auto const asked = [&] {
        int sum = 0;
        for (auto& way : all.ways) sum += way.struck();
        return sum;
    };
    CHECK(eventually([&] {  // not again over the same connection
        all.take_new_lock();
        auto const before = asked();
        for (int i = 0; i < 5; ++i) all.take_new_lock();
        return before >= 3 && asked() == before;
    }));
}

TEST_CASE("whatever becomes of what a counter is to begin with, the lock is taken with a token that is greater, or is not left behind")
{
    guarded_masters all;
    auto const how = GENERATE(0, 1, 2);
    CHECK(eventually([&] {
        auto m = all.new_lock();
        std::vector<int> before;
        for (auto& way : all.ways) {
            way.heal();
            before.push_back(way.struck());
            if (how == 0) way.drop_next_request({.matches = containing("PXAT")});
            if (how == 1) way.swallow_next_reply({.matches = containing("PXAT")});
            if (how == 2) way.answer_next_request("-OOM command not allowed when used memory > 'maxmemory'.\r\n", {.matches = containing("PXAT")});
        }
        auto const token = take_and_free(m);
        CHECK(take_and_free(m) > token);
        int struck = 0;
        for (std::size_t i = 0; i < all.ways.size(); ++i) struck += all.ways[i].struck() > before[i] ? 1 : 0;
        return struck >= 3;
    }));
    CHECK(eventually([&] { return all.five.copies(all.name()) == 0; }));
}
