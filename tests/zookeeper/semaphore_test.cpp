// SPDX-License-Identifier: MIT
//
// What a semaphore leaves in the tree.
#include "patient.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/zookeeper_server.hpp"
#include "support/zookeeper_tree.hpp"

#include <holdfast/zookeeper.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using holdfast::leased_permit;
using holdfast::test::connected;
using holdfast::test::eventually;
using holdfast::test::zookeeper_server;
using holdfast::test::zookeeper_tree;
using holdfast::zookeeper::naming;
using holdfast::zookeeper::node_options;
using holdfast::zookeeper::queueing;
using holdfast::zookeeper::semaphore;

TEST_CASE("waits for a permit leave no node and no watch, however they end; a release wakes one that waits",
          "[lesson-15]")
{
    auto const nodes =
        GENERATE(node_options{}, node_options{.queueing = queueing::none}, node_options{.naming = naming::kazoo});
    zookeeper_server server;
    auto here = connected(server.address());
    auto there = connected(server.address());
    semaphore holder{here, "/app/jobs", 2, {}, nodes};
    std::optional<semaphore> rival{std::in_place, there, "/app/jobs", 2, holdfast::lock_options{}, nodes};
    zookeeper_tree tree{server.address()};
    auto const all_nodes = [&] {
        if (nodes.queueing == queueing::none)
            return tree.children("/app");  // the slots themselves, while they are held
        auto all = tree.children("/app/jobs#0");
        for (auto& one : tree.children("/app/jobs#1")) all.push_back(std::move(one));
        return all;
    };
    leased_permit one{holder};
    leased_permit const two{holder};
    auto const before = all_nodes();
    CHECK(before.size() == 2);
    CHECK_FALSE(rival->try_acquire());
    CHECK_FALSE(rival->try_acquire_for(100ms));
    CHECK(all_nodes() == before);
    std::jthread waiter{[&] {
        leased_permit const third{*rival};
        CHECK(third.slot() == one.slot());
        CHECK(third.fencing_token() > one.fencing_token());
    }};
    std::this_thread::sleep_for(200ms);
    one.release();
    waiter.join();
    CHECK(rival->try_acquire_for(1min));
    rival.reset();
    CHECK(two.still_held());
    // It leaves the queue of the slot that it did not get in the background.
    CHECK(eventually([&] { return server.ask("wchs").find("Total watches:0") != std::string::npos; }));
    CHECK(eventually([&] { return all_nodes().size() == 1; }));
}
