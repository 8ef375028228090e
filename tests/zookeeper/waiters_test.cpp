// SPDX-License-Identifier: MIT
//
// What those who wait cost the server, and what is left of them when they go.
#include "patient.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/proxy.hpp"
#include "support/zookeeper_server.hpp"
#include "support/zookeeper_tree.hpp"

#include <holdfast/zookeeper.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <semaphore>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using holdfast::test::connected;
using holdfast::test::eventually;
using holdfast::test::proxy;
using holdfast::test::zookeeper_packets;
using holdfast::test::zookeeper_server;
using holdfast::test::zookeeper_tree;
using holdfast::zookeeper::mutex;
using holdfast::zookeeper::node_options;
using holdfast::zookeeper::queueing;
using holdfast::zookeeper::session;

TEST_CASE("one waiter wakes for a release, at 2 and at 200 waiters")
{
    auto const waiters = GENERATE(2L, 200L);
    zookeeper_server server;
    // Who shows that it lives does so every few minutes: all that the server hears is about the lock.
    holdfast::zookeeper::session_options const silent{.session_timeout = 1h};
    auto here = connected(server.address(), silent);
    mutex holder{here, "/orders"};
    holder.lock();
    std::atomic<long> woken{0};
    std::counting_semaphore<> go_on{0};
    std::vector<std::unique_ptr<session>> sessions;
    std::vector<std::jthread> threads;
    for (long i = 0; i < waiters; ++i) {
        sessions.push_back(std::make_unique<session>(connected(server.address(), silent)));
        threads.emplace_back([&, zk = sessions.back().get()] {
            mutex m{*zk, "/orders"};
            m.lock();
            ++woken;
            go_on.acquire();
            m.unlock();
        });
    }
    // Each of them watches exactly the one before it.
    CHECK(eventually([&] { return server.watches() == waiters; }, 5min));
    CHECK(server.ask("wchs").find(std::to_string(waiters) + " connections watching " + std::to_string(waiters) +
                                  " paths") != std::string::npos);

    auto const before = server.packets();
    REQUIRE(before > 0);
    auto const handovers = std::min(waiters, 20L);
    holder.unlock();
    for (long i = 1; i <= handovers; ++i) {
        CHECK(eventually([&] { return woken >= i; }));
        CHECK(woken == i);
        if (i < handovers) go_on.release();
    }
    auto const heard = server.packets() - before;
    CHECK(server.watches() == waiters - handovers);
    // For each a delete and a look at the children, and what has just been asked; a second one that wakes would look,
    // and watch again.
    CHECK(heard >= 2 * handovers);
    CHECK(heard <= 2 * handovers + 1);
    go_on.release(waiters);
    threads.clear();
    CHECK(woken == waiters);
    CHECK(zookeeper_tree{server.address()}.children("/orders").empty());
}

TEST_CASE("waits that end before their turn leave no watch, neither in the server nor in the client")
{
    auto const nodes = GENERATE(node_options{}, node_options{.queueing = queueing::none});
    zookeeper_server server;
    proxy way{server.port(), zookeeper_packets};
    auto here = connected(server.address());
    auto there = connected(way.address(), {.session_timeout = 20s});
    mutex holder{here, "/orders", {}, nodes};
    mutex rival{there, "/orders", {}, nodes};
    holder.lock();
    for (int i = 0; i < 50; ++i) {
        std::atomic<bool> locked{true};
        std::jthread waiter{[&](std::stop_token const& stop) { locked = rival.lock(stop); }};
        REQUIRE(eventually([&] { return server.watches() == 1; }));
        waiter.request_stop();
        waiter.join();
        REQUIRE_FALSE(locked);
        REQUIRE(eventually([&] { return server.watches() == 0; }));
    }
    // A client sets the watches that it still has again when it is connected again.
    way.refuse();
    CHECK(eventually([&] { return there.state() != holdfast::zookeeper::session_state::connected; }));
    way.pass();
    CHECK(there.connect_for(1min));
    CHECK_FALSE(rival.try_lock());  // answered behind what the client has set again
    CHECK(server.watches() == 0);
}

TEST_CASE("a watch that nobody waits for any more is removed when the connection is there again")
{
    zookeeper_server server;
    proxy way{server.port(), zookeeper_packets};
    auto here = connected(server.address());
    auto there = connected(way.address(), {.session_timeout = 20s, .operation_timeout = 100ms});
    mutex holder{here, "/orders"};
    mutex rival{there, "/orders"};
    holder.lock();
    std::atomic<bool> locked{true};
    std::jthread waiter{[&](std::stop_token const& stop) { locked = rival.lock(stop); }};
    REQUIRE(eventually([&] { return server.watches() == 1; }));
    way.refuse();
    REQUIRE(eventually([&] { return there.state() != holdfast::zookeeper::session_state::connected; }));
    waiter.request_stop();
    waiter.join();
    CHECK_FALSE(locked);
    way.pass();
    zookeeper_tree tree{server.address()};
    CHECK(eventually([&] { return tree.children("/orders").size() == 1; }));
    CHECK(eventually([&] { return server.watches() == 0; }));
    CHECK(holder.lease().still_held());
}
