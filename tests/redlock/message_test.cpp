// SPDX-License-Identifier: MIT
//
// What is said of masters that do not grant.
#include "masters.hpp"
#include "support/catch.hpp"
#include "support/code_of.hpp"

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::redlock::masters;
using holdfast::redlock::mutex;
using holdfast::test::code_of;
using holdfast::test::containing;
using holdfast::test::contains;
using holdfast::test::eventually;
using holdfast::test::proxy;
using holdfast::test::redis_fleet;
using holdfast::test::redis_server;

namespace {

std::string address_of(redis_server const& server) { return "redis://127.0.0.1:" + std::to_string(server.port()); }

/// Returns: what is thrown by the one attempt of a client that has just been made.
holdfast::error attempt(std::vector<std::string> const& urls)
{
    masters three{urls, {.node_timeout = 10s, .connect_timeout = 1min, .restart_guard = 0ms}};
    mutex m{three, "orders"};
    try {
        static_cast<void>(m.try_lock());
    } catch (holdfast::error const& e) {
        return e;
    }
    return {errc::timed_out, "nothing was thrown"};
}

}  // namespace

TEST_CASE("no quorum: every master that is dead is named, with the reason")
{
    redis_fleet three{3};
    three[0].kill();
    three[2].kill();
    auto const e = attempt(three.urls());
    CHECK(e.what() == "lock \"orders\": no quorum of 3 masters; " + address_of(three[0]) + " (Connection refused), " +
                          address_of(three[2]) + " (Connection refused): cannot connect");
    CHECK(e.lock_name() == "orders");
    CHECK(e.server() == address_of(three[0]));
    three[1].kill();
    std::string const all = attempt(three.urls()).what();
    CHECK(std::count_if(three.begin(), three.end(), [&](redis_server const& one) {  // two decide
              return all.find(address_of(one) + " (Connection refused)") != std::string::npos;
          }) >= 2);
    CHECK_THAT(all, !contains("answered"));
}

TEST_CASE("no quorum: a master that refuses is named beside one that is dead, each with its own reason")
{
    redis_fleet two{2};
    redis_server locked{{.password = "right-secret"}};
    two[1].kill();
    auto urls = two.urls();
    urls.push_back(locked.url("", "wrong-secret"));
    auto const e = attempt(urls);
    CHECK(e.code() == holdfast::redis::errc::cannot_connect);
    CHECK(e.server() == address_of(two[1]));
    CHECK(e.what() == "lock \"orders\": no quorum of 3 masters; " + address_of(locked) +
                          ": authentication failed; check user and password; " + address_of(two[1]) +
                          " (Connection refused): cannot connect");
    std::swap(urls[0], urls[2]);
    masters client{urls, {.node_timeout = 5s, .connect_timeout = 1min, .restart_guard = 0ms}};
    CHECK(code_of([&] { static_cast<void>(client.holder("orders")); }) == errc::unavailable);
    two[0].kill();
    CHECK(code_of([&] { static_cast<void>(client.holder("orders")); }) == errc::unavailable);
}

TEST_CASE("no quorum for a renewal: a master without a vote is named with its reason, one that is well is not")
{
    redis_fleet three{3};
    std::vector<proxy> ways;
    for (auto const& one : three) {  // at first they say that they have run for long
        auto const said = "run_id:" + std::to_string(one.port()) + "\r\nuptime_in_seconds:1000000\r\n";
        ways.emplace_back(one.port())
            .spoil_next_reply("$" + std::to_string(said.size()) + "\r\n" + said + "\r\n",
                              {.matches = containing("server")});
    }
    std::mutex guards;
    std::vector<std::string> told;
    masters client{urls(ways), {.node_timeout = 5s, .connect_timeout = 1min, .restart_guard = 1h}};
    mutex m{client, "orders", {.ttl = 20s, .on_error = [&](holdfast::error const& e) {
                                   std::scoped_lock guard{guards};
                                   told.emplace_back(e.what());
                               }}};
    REQUIRE(holdfast::test::lock_on_all(three, m, "orders"));
    three.kill(0);
    three.restart(1);
    CHECK(eventually([&] {
        std::scoped_lock guard{guards};
        return std::any_of(told.begin(), told.end(), [&](std::string const& what) {
            return what.find("renewal: no quorum of 3 masters; ") != std::string::npos &&
                   what.find(ways[1].url() + " (no vote for another ") != std::string::npos &&
                   what.find(ways[2].url()) == std::string::npos;
        });
    }));
    m.unlock();
}
