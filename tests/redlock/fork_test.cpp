// SPDX-License-Identifier: MIT
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/process.hpp"
#include "support/redis_server.hpp"

#include <holdfast/redlock.hpp>

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::test::child;
using holdfast::test::eventually;
using holdfast::test::redis_fleet;

TEST_CASE("extend says in a child that nothing is held there, and waits for nothing that was locked when it was forked")
{
    redis_fleet servers{3};
    holdfast::redlock::masters client{
        servers.urls(), {.node_timeout = 1s, .connect_timeout = 1min, .restart_guard = 2s}};  // which extend looks at
    holdfast::lock_options const options{.ttl = 2s, .unavailable_after = 1min};
    holdfast::redlock::mutex m{client, "orders", options};
    m.lock();
    std::atomic<bool> stop{false};
    std::vector<std::jthread> busy;
    for (int i = 0; i < 4; ++i)
        busy.emplace_back([&, i] {
            holdfast::redlock::mutex own{client, "orders/" + std::to_string(i), options};
            while (!stop) std::scoped_lock const guard{own};
        });
    for (int n = 0; n < 500; ++n) {
        auto born = child::fork([&] {
            std::error_code ec;
            return !m.extend(1h, ec) && ec == errc::not_owner ? 0 : 1;
        });
        auto const status = born.wait_for(1min);
        CHECK(status == 0);
        if (!status) break;  // it hangs
    }
    stop = true;
}

TEST_CASE("in a child no token is stopped that was asked for before the fork, and none of a request")
{
    redis_fleet servers{3};
    holdfast::redlock::masters client{servers.urls(),
                                      {.node_timeout = 10s, .connect_timeout = 1min, .restart_guard = 0ms}};
    holdfast::redlock::mutex m{client, "orders", {.ttl = 1h, .unavailable_after = 1min}};
    m.lock();
    auto const lease = m.lease();
    auto const lost = lease.lost_token();
    auto const requested = lease.release_requested();
    auto born = child::fork([&] {
        if (lease.still_held()) return 1;
        if (lost.stop_requested() || requested.stop_requested()) return 2;
        if (!lease.lost_token().stop_requested()) return 3;
        return lease.release_requested().stop_requested() ? 4 : 0;
    });
    CHECK(born.wait_for(1min) == 0);
    CHECK(lease.still_held());
    CHECK_FALSE(lost.stop_requested());
}
