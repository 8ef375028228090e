// SPDX-License-Identifier: MIT
//
// Single attempts of a client that is not connected yet.
#include "support/catch.hpp"
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
using holdfast::redlock::mutex;
using holdfast::test::proxy;
using holdfast::test::redis_fleet;

TEST_CASE("a single attempt of a client that is not connected yet waits for its connections")
{
    redis_fleet servers{3};
    std::array<proxy, 3> ways{proxy{servers[0].port()}, proxy{servers[1].port()}, proxy{servers[2].port()}};
    std::vector<std::string> urls;
    for (auto& way : ways) {
        way.delay(110ms, 110ms);
        urls.push_back(way.url());
    }
    // The greeting and the request take longer together.
    masters far{urls, {.node_timeout = 300ms, .connect_timeout = 1min, .restart_guard = 0ms}};
    bool const job = GENERATE(false, true);
    if (job) {
        bool ran = false;
        CHECK(holdfast::run_once(far, "report", 1min, [&] { ran = true; }));
        CHECK(ran);
    } else {
        mutex m{far, "orders", {.ttl = 1min}};
        CHECK(m.try_lock());
    }
}
