// SPDX-License-Identifier: MIT
//
// Processes that fork beside a session.
#include "patient.hpp"
#include "support/catch.hpp"
#include "support/code_of.hpp"
#include "support/process.hpp"
#include "support/zookeeper_server.hpp"

#include <holdfast/zookeeper.hpp>

#include <chrono>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using holdfast::test::child;
using holdfast::test::code_of;
using holdfast::test::connected;
using holdfast::test::zookeeper_server;
using holdfast::zookeeper::mutex;

TEST_CASE(
    "a child that is forked beside a busy session is told that it is not its own, and waits for nothing that was locked then")
{
    zookeeper_server server;
    auto zk = connected(server.address());
    mutex m{zk, "/orders"};
    std::vector<std::jthread> busy;
    for (int i = 0; i < 4; ++i)
        busy.emplace_back([&](std::stop_token const& stop) {
            while (!stop.stop_requested()) static_cast<void>(zk.state());
        });
    for (int i = 0; i < 100; ++i) {
        auto born = child::fork([&] {
            if (zk.state() != holdfast::zookeeper::session_state::lost) return 1;
            auto const is_refused = [](auto const& use) { return code_of(use) == holdfast::errc::misconfigured; };
            if (!is_refused([&] { static_cast<void>(m.contenders()); })) return 2;
            if (!is_refused([&] { holdfast::zookeeper::semaphore{zk, "/jobs", 2}; })) return 3;
            return is_refused([&] { holdfast::semaphore{zk, "/jobs", 2}; }) ? 0 : 4;
        });
        auto const status = born.wait_for(1min);
        CHECK(status == 0);
        if (!status) break;  // it hangs
    }
}

TEST_CASE("children that are forked beside a busy session make sessions of their own")
{
    zookeeper_server server;
    auto zk = connected(server.address());
    std::jthread busy{[&](std::stop_token const& stop) {
        mutex m{zk, "/busy"};
        while (!stop.stop_requested()) std::scoped_lock const hold{m};
    }};
    for (int i = 0; i < 10; ++i) {
        auto born = child::fork([&] {
            auto own = connected(server.address());
            mutex m{own, "/orders"};
            return m.try_lock() ? 0 : 1;
        });
        REQUIRE(born.wait_for(3min) == 0);
    }
}
