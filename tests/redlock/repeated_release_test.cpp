// SPDX-License-Identifier: MIT
//
// Releases that one master did not take at first: when they are repeated, and when no more.
#include "masters.hpp"
#include "redis/observed.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"

#include <holdfast/redlock.hpp>

#include <chrono>
#include <future>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using holdfast::redlock::mutex;
using holdfast::test::aftermath;
using holdfast::test::containing;
using holdfast::test::eventually;
using holdfast::test::proxied_masters;

namespace {

/// Effects: releases `m` while none of `three` can be sent anything.
void release_in_vain(proxied_masters& three, mutex& m)
{
    for (auto& way : three.ways) way.refuse();
    std::error_code ec;
    CHECK(eventually([&] {  // until every connection is known to be down
        ec.clear();
        m.extend(2h, ec);
        return ec == holdfast::errc::unavailable;
    }));
    m.unlock(ec);
    CHECK(ec);
    for (auto& way : three.ways) way.heal();
}

}  // namespace

TEST_CASE("a roll-back that a master refused for now does not free what was extended there since")
{
    proxied_masters three;
    mutex m{three.client, "orders", {.ttl = 1min, .renew = false, .fencing = false}};
    three.ways[1].hold(containing("orders"));
    three.ways[2].swallow_next_reply({.matches = containing("orders")});
    three.ways[2].hold(containing(holdfast::test::of_release));
    three.ways[2].answer_next_request("-LOADING Redis is loading the dataset in memory\r\n",
                                      {.matches = containing(holdfast::test::of_release)});
    auto attempt = std::async(std::launch::async, [&] { return m.try_lock(); });
    CHECK(eventually([&] { return three.ways[2].held() == 1; }));  // the roll-back, with the second acquire behind it
    three.ways[1].let_go();
    REQUIRE(attempt.get());
    three.ways[2].let_go();
    CHECK(eventually([&] { return three.ways[2].struck() == 2; }));
    std::this_thread::sleep_for(
        100ms);             // its answer arrives; where it is late, the extension is on its way when it does
    CHECK(eventually([&] {  // once more where two knew the script before the third
        m.extend(1h);
        return eventually([&] { return three.servers[2].command({"PTTL", "orders"}).integer > 600'000; }, 500ms);
    }));
    three.use();
    CHECK(three.exists(2, "orders"));
    m.unlock();
    CHECK(eventually([&] { return !three.exists(2, "orders"); }));
}

TEST_CASE("a release whose connection broke and could not be made again is repeated by the next use of the masters")
{
    proxied_masters three;
    mutex m{three.client, "orders", {.ttl = 1h, .renew = false}};
    m.lock();
    CHECK(eventually([&] { return three.on_all("orders"); }));
    for (std::size_t i : {1U, 2U}) three.ways[i].hold(containing("orders"));
    auto released = std::async(std::launch::async, [&] {
        std::error_code ec;
        m.unlock(ec);
        return ec;
    });
    CHECK(eventually([&] { return three.ways[2].held() == 1; }));
    three.ways[2].refuse();
    std::this_thread::sleep_for(100ms);  // it is sent again, in vain
    three.ways[1].let_go();
    CHECK_FALSE(released.get());
    CHECK(three.exists(2, "orders"));
    three.ways[2].heal();
    three.use();
    CHECK(eventually([&] { return !three.exists(2, "orders"); }));
}

TEST_CASE("a release that no master could be sent is repeated by the next use of the masters")
{
    proxied_masters three;
    mutex m{three.client, "orders", {.ttl = 1h, .renew = false, .fencing = GENERATE(true, false)}};
    m.lock();
    CHECK(eventually([&] { return three.on_all("orders"); }));
    release_in_vain(three, m);
    three.use();
    CHECK(eventually([&] { return holdfast::test::copies(three.servers, "orders") == 0; }));
}

TEST_CASE("a release that cannot be sent is repeated where the answer to the acquire was lost, too")
{
    proxied_masters three;
    mutex m{three.client, "orders", {.ttl = 1h, .renew = false, .fencing = GENERATE(true, false)}};
    three.ways[2].swallow_next_reply({.matches = containing("orders"), .then = aftermath::silence});
    m.lock();  // the others said yes
    CHECK(eventually([&] { return three.on_all("orders"); }));
    CHECK(eventually([&] { return three.ways[2].struck() == 1; }));
    release_in_vain(three, m);
    three.use();
    CHECK(eventually([&] { return holdfast::test::copies(three.servers, "orders") == 0; }));
}

TEST_CASE("an extension does not count where a roll-back that may still arrive would undo it")
{
    constexpr auto node_timeout = 10s;
    proxied_masters three{node_timeout};
    mutex m{three.client, "orders", {.ttl = 1min, .renew = false, .fencing = false}};
    three.ways[1].hold(containing("orders"));
    three.ways[2].swallow_next_reply({.matches = containing("orders")});
    three.ways[2].hold(containing(holdfast::test::of_release));
    auto attempt = std::async(std::launch::async, [&] { return m.try_lock(); });
    CHECK(eventually([&] { return three.ways[2].held() == 1; }));
    three.ways[1].let_go();
    REQUIRE(attempt.get());
    std::this_thread::sleep_for(node_timeout + 100ms);  // the connection is given up, and not what is under way over it
    three.ways[0].blackhole();
    std::error_code ec;
    CHECK_FALSE(m.extend(1h, ec));
    CHECK(ec);
    CHECK(three.servers[2].command({"PTTL", "orders"}).integer < 60'000);
}
