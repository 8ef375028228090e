// SPDX-License-Identifier: MIT
//
// Whatever becomes of the counters of a lock on several masters, its tokens increase.
#include "masters.hpp"
#include "redis/observed.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

using namespace std::chrono_literals;
using holdfast::redlock::masters;
using holdfast::redlock::mutex;
using holdfast::test::calls;
using holdfast::test::eventually;
using holdfast::test::code_of;
using holdfast::test::contains;
using holdfast::test::five_masters;
using holdfast::test::redis_fleet;
using holdfast::test::take_and_free;

namespace {

std::string const fence = "holdfast:fence:{orders}";

/// Three masters that vote, and a client with a short guard.
struct guarded_masters {
    static constexpr auto guard = 4s;

    redis_fleet servers{3};
    std::vector<holdfast::error> told;
    masters client{servers.urls(), {.node_timeout = 2s, .connect_timeout = 1min, .restart_guard = guard}};
    mutex m{client, "orders", {.ttl = guard, .unavailable_after = 5min, .on_error = [this](holdfast::error const& e) {
                  // There is more to tell of masters: that they were just started, and that one has no vote.
                  if (std::string_view{e.what()}.find("key \"") != std::string_view::npos) told.push_back(e);
              }}};

    guarded_masters()
    {
        REQUIRE(holdfast::test::lock_on_all(servers, m, "orders", 5min));
        m.unlock();
    }

    void poison(std::size_t i, std::string const& how)
    {
        servers[i].command({"DEL", fence});
        servers[i].command({how == "list" ? "LPUSH" : "SET", fence, how});
    }

    /// Returns: how far the counter of a server is ahead of its clock, in seconds.
    [[nodiscard]] double ahead(std::size_t i)
    {
        auto const time = servers[i].command({"TIME"}).elements;
        auto const text = servers[i].command({"GET", fence}).text;
        return (std::stod(text) - std::stod(time.at(0).text) * 1e6 - std::stod(time.at(1).text)) / 1e6;
    }
};

std::vector<std::uint64_t> counters(five_masters& five)
{
    std::vector<std::uint64_t> all;
    for (auto const& one : five.servers.command({"GET", fence}))
        all.push_back(one.text.empty() ? 0 : std::stoull(one.text));
    return all;
}

}  // namespace

TEST_CASE("a lock on several masters is taken by one script call on each, the first of its name too")
{
    five_masters five;
    auto const fencing = GENERATE(true, false);
    for (int i = 0; i < 3; ++i) {
        mutex m{five.client, "orders/" + std::to_string(i), {.fencing = fencing}};
        REQUIRE(five.lock_on_all(m, "orders/" + std::to_string(i)));
        m.unlock();
    }
    for (auto& one : five.servers) {
        auto const plain = calls(one, "set") + calls(one, "incrby");
        CHECK(plain <= 3 * (calls(one, "eval") + calls(one, "evalsha")));  // what scripts call is counted, too
        CHECK(calls(one, "eval") + calls(one, "evalsha") >= 3);
    }
}

TEST_CASE("counters that are lost behind the client's back are made anew by the clock, with an end")
{
    five_masters five;
    mutex m{five.client, "orders"};
    take_and_free(m);
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
    masters other{five.servers.urls(), five_masters::options()};
    mutex holder{other, "orders", {.ttl = 60s}};
    take_and_free(holder);  // over connections that stand: nobody is left out
    REQUIRE(five.lock_on_all(holder, "orders"));
    auto const before = counters(five);
    for (int i = 0; i < 50; ++i) CHECK_FALSE(m.try_lock());
    auto const after = counters(five);
    for (std::size_t i = 0; i < 5; ++i) CHECK(after[i] == before[i]);
    auto const last = holder.lease().fencing_token();
    holder.unlock();
    CHECK(take_and_free(m) > last);
    CHECK(take_and_free(m) > last);
}

TEST_CASE(
    "a counter that somebody else wrote on one master is not passed on, and is told once, with the key's name and the master")
{
    guarded_masters three;
    auto last = take_and_free(three.m);
    for (auto const* how : {"9223372036854775807", "9007199254740993", "1e300", "list"}) {
        CAPTURE(how);
        three.poison(1, how);
        CHECK(eventually([&] {  // the slowest of three may not be asked
            auto const token = take_and_free(three.m);
            CHECK(token > last);
            last = token;
            auto const left = three.servers[1].command({"PTTL", fence}).integer;
            return left > 3'000'000 && left <= 3'600'000;
        }));
        for (std::size_t i : {0U, 2U}) CHECK(three.ahead(i) <= 1.5 * 4);
    }
    CHECK(eventually([&] {
        take_and_free(three.m);
        return three.told.size() == 1;
    }));
    REQUIRE(three.told.size() == 1);
    CHECK(three.told.back().code() == holdfast::redis::errc::foreign_fence);
    CHECK_THAT(three.told.back().what(),
               contains("key \"holdfast:fence:{orders}\"") && contains(std::to_string(three.servers[1].port())));
    last = take_and_free(three.m);
    CHECK(eventually([&] { return holdfast::test::copies(three.servers, "orders") == 0; }));
    CHECK(eventually([&] {  // it votes again
        auto const token = take_and_free(three.m);
        CHECK(token > last);
        last = token;
        return three.ahead(1) > -1e9 && three.ahead(1) <= 1.5 * 4;
    }, 1min));
    CHECK(three.told.size() == 1);
}

TEST_CASE(
    "counters that somebody else wrote on all masters are named, no key is left, and the lock works again when a guard has passed")
{
    guarded_masters three;
    auto const last = take_and_free(three.m);
    for (std::size_t i = 0; i < 3; ++i) three.poison(i, "9223372036854775807");
    std::string what;
    auto const code = code_of([&] { (void)three.m.try_lock(); }, &what);
    CHECK(code == holdfast::redis::errc::foreign_fence);
    CHECK(code == holdfast::errc::unavailable);
    CHECK_THAT(what, contains("key \"holdfast:fence:{orders}\""));
    CHECK(eventually([&] { return holdfast::test::copies(three.servers, "orders") == 0; }));
    CHECK(take_and_free(three.m) > last);
    for (std::size_t i = 0; i < 3; ++i) CHECK(three.ahead(i) <= 1.5 * 4);
}
