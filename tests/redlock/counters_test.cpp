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
#include <vector>

using namespace std::chrono_literals;
using holdfast::redlock::masters;
using holdfast::redlock::mutex;
using holdfast::test::calls;
using holdfast::test::eventually;
using holdfast::test::five_masters;
using holdfast::test::take_and_free;

namespace {

std::string const fence = "holdfast:fence:{orders}";

std::vector<std::uint64_t> counters(five_masters& five)
{
    std::vector<std::uint64_t> all;
    for (auto const& one : five.servers.command({"GET", fence})) all.push_back(one.text.empty() ? 0 : std::stoull(one.text));
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
