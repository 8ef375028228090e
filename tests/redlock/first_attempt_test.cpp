// SPDX-License-Identifier: MIT
//
// Jobs of a process that is not connected yet.
#include "support/catch.hpp"
#include "support/code_of.hpp"
#include "support/eventually.hpp"
#include "support/proxy.hpp"
#include "support/redis_server.hpp"

#include <holdfast/adapters/run_once.hpp>
#include <holdfast/redlock.hpp>

#include <array>
#include <chrono>
#include <string>
#include <vector>

using namespace std::chrono_literals;
using holdfast::redlock::masters;
using holdfast::test::code_of;
using holdfast::test::eventually;
using holdfast::test::proxy;
using holdfast::test::redis_fleet;

TEST_CASE("a job of a process that is not connected yet waits for the connections")
{
    redis_fleet servers{3};
    std::array<proxy, 3> ways{proxy{servers[0].port()}, proxy{servers[1].port()}, proxy{servers[2].port()}};
    std::vector<std::string> urls;
    for (auto& way : ways) {
        way.delay(60ms, 60ms);
        urls.push_back(way.url());
    }
    // The greeting and the request take longer together. Each client makes one attempt, until one of them is not kept
    // from it by the machine for a second.
    bool ran = false;
    CHECK(eventually([&] {
        masters far{urls, {.node_timeout = 200ms, .connect_timeout = 1min, .restart_guard = 0ms}};
        auto const code = code_of([&] { holdfast::run_once(far, "report", 1min, [&] { ran = true; }); });
        return ran || code != holdfast::errc::unavailable;
    }));
    CHECK(ran);
}

TEST_CASE("a job that is tried first while the votes are split does not wait for a master that hangs")
{
    redis_fleet servers{3};
    servers[1].command({"SET", "report", "another's", "PX", "3600000"});
    servers.pause(2);
    masters three{servers.urls(), {.node_timeout = 500ms, .connect_timeout = 1h, .restart_guard = 0ms}};
    auto const begun = std::chrono::steady_clock::now();
    auto const code = code_of([&] { static_cast<void>(holdfast::run_once(three, "report", 1min, [] {})); });
    CHECK(code == holdfast::errc::unavailable);
    CHECK(std::chrono::steady_clock::now() - begun < 5min);
    servers.resume(2);
}
