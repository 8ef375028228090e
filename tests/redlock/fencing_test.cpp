// SPDX-License-Identifier: MIT
#include "masters.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using holdfast::redlock::masters;
using holdfast::redlock::mutex;
using holdfast::test::five_masters;

namespace {

std::string const fence = "holdfast:fence:{orders}";

/// A lock of which each holder notes whether its token is the greatest so far.
struct observer {
    five_masters five;
    std::uint64_t last = 0;

    bool next(holdfast::redlock::masters& client)
    {
        mutex m{client, "orders"};
        if (!m.try_lock_for(1min)) return false;
        auto const token = m.lease().fencing_token();
        bool const greater = token > last && on_majority(token);
        last = token;
        return greater;
    }
    bool next() { return next(five.client); }

    /// Returns: whether a majority of all has a counter no less than `token`: then any later majority knows of it.
    bool on_majority(std::uint64_t token)
    {
        auto const all = five.servers.command({"GET", fence});
        return std::count_if(all.begin(), all.end(),
                             [&](auto const& r) { return !r.text.empty() && std::stoull(r.text) >= token; }) >= 3;
    }
};

}  // namespace

TEST_CASE("fencing tokens increase while masters die and come back")
{
    observer o;
    CHECK(o.next());
    for (std::size_t i = 0; i < 5; ++i) {
        auto const j = (i + 2) % 5;
        o.five.servers.kill(i);
        CHECK(o.next());
        o.five.servers.kill(j);
        CHECK(o.next());
        CHECK(o.next());
        o.five.servers.restart(i);
        CHECK(o.next());
        o.five.servers.restart(j);
        CHECK(o.next());
        CHECK(o.next());
    }
}

TEST_CASE("counters that diverge are written back to a majority")
{
    observer o;
    CHECK(o.next());
    auto const base = o.last;
    auto const set = [&](std::vector<std::uint64_t> const& ahead) {
        for (std::size_t i = 0; i < 5; ++i)
            o.five.servers[i].command({"SET", fence, std::to_string(base + ahead[i]), "PX", "3600000"});
    };
    set({1'000'000, 2'000'000, 3'000'000, 4'000'000, 5'000'000});
    CHECK(o.next());
    CHECK(o.last > base + 3'000'000 - 1);  // any three know at least that much
    set({9'000'000, 6'000'000, 6'000'000, 6'000'000, 6'000'000});
    CHECK(o.next());
    CHECK(o.next());
    set({20'000'000, 20'000'000, 20'000'000, 0, 0});
    o.five.servers.kill(0);
    o.five.servers.kill(1);
    CHECK(o.next());
    CHECK(o.last > base + 20'000'000);
}

TEST_CASE("the greatest counter of any majority is respected")
{
    observer o;
    CHECK(o.next());
    auto const base = o.last;
    for (std::size_t alone = 0; alone < 5; ++alone) {
        auto const far = base + 10'000'000 * (alone + 1);
        for (std::size_t i = 0; i < 5; ++i)  // three know of `far`, the others are behind
            o.five.servers[(alone + i) % 5].command(
                {"SET", fence, std::to_string(i < 3 ? far : base), "PX", "3600000"});
        CHECK(o.next());
        CHECK(o.last > far);
    }
}

TEST_CASE("fencing tokens increase from client to client and over lost counters of a minority")
{
    observer o;
    auto other = masters{o.five.servers.urls(), five_masters::options()};
    for (int i = 0; i < 5; ++i) {
        CHECK(o.next());
        CHECK(o.next(other));
        o.five.servers[static_cast<std::size_t>(i)].command({"DEL", fence});
        o.five.servers[static_cast<std::size_t>((i + 1) % 5)].command({"DEL", fence});
    }
}

TEST_CASE("masters that come back with an old snapshot do not repeat a token")
{
    observer o;
    auto const options = holdfast::redlock::masters_options{.node_timeout = 500ms, .restart_guard = 2s};
    auto const next = [&](masters& client) {
        mutex m{client, "orders", {.ttl = 2s, .unavailable_after = 1min}};
        m.lock();
        return std::exchange(o.last, m.lease().fencing_token()) < m.lease().fencing_token();
    };
    masters before{o.five.servers.urls(), options};
    REQUIRE(holdfast::test::eventually(
        [&] {  // a server counts its uptime in whole seconds: some have their vote a second before others
            next(before);
            return o.five.copies(fence) == 5;
        }));
    o.five.servers.command({"SAVE"});
    for (int i = 0; i < 100; ++i) CHECK(next(before));
    for (std::size_t i : {0U, 1U, 2U}) o.five.servers.restart(i);
    auto const old = o.five.servers.command({"GET", fence});
    CHECK(old[0].text < old[4].text);
    for (std::size_t i : {3U, 4U}) o.five.servers.kill(i);
    masters after{o.five.servers.urls(), options};
    CHECK(next(after));
    CHECK(next(before));
}

TEST_CASE("fresh counters begin alike, so that the first lock of a name takes one round trip")
{
    five_masters five;
    masters guarded{five.servers.urls(), {.node_timeout = 1000ms, .restart_guard = 2s}};
    mutex warm{guarded, "warm", {.ttl = 2s, .unavailable_after = 1min}};
    auto const all_vote = [&] {
        if (!holdfast::test::code_of([&] { (void)warm.try_lock(); })) warm.unlock();
        return five.copies("holdfast:fence:{warm}") == 5;
    };
    REQUIRE(holdfast::test::eventually(all_vote, 30s));
    int n = 0;
    CHECK(holdfast::test::eventually(
        [&] {  // with another name where one was asked so late that its clock was ahead of the proposal
            auto const name = "orders/" + std::to_string(n++);
            mutex m{guarded, name, {.ttl = 2s, .unavailable_after = 1min}};
            m.lock();
            return holdfast::test::eventually(
                [&] {  // the slowest two may still be at it
                    auto const all = five.servers.command({"GET", "holdfast:fence:{" + name + "}"});
                    return !all.front().text.empty() && std::count_if(all.begin(), all.end(), [&](auto const& r) {
                                                            return r.text == all.front().text;
                                                        }) == 5;
                },
                500ms);
        }));
}

TEST_CASE("counters of masters whose clocks are not compared are kept for a day and an hour from each lock on")
{
    five_masters five;
    mutex m{five.client, "orders"};
    for (int i = 0; i < 3; ++i) {
        five.servers.command({"PEXPIRE", fence, "60000"});
        m.lock();
        m.unlock();
        auto const all = five.servers.command({"PTTL", fence});
        CHECK(std::count_if(all.begin(), all.end(),
                            [](auto const& r) { return r.integer > 89'000'000 && r.integer <= 90'000'000; }) >= 3);
    }
}
