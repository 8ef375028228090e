// SPDX-License-Identifier: MIT
//
// Processes that fork beside a session.
#include "patient.hpp"
#include "support/catch.hpp"
#include "support/process.hpp"
#include "support/zookeeper_server.hpp"

#include <holdfast/zookeeper.hpp>

#include <chrono>
#include <mutex>
#include <stop_token>
#include <thread>

using namespace std::chrono_literals;
using holdfast::test::child;
using holdfast::test::connected;
using holdfast::test::zookeeper_server;
using holdfast::zookeeper::mutex;

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
