// SPDX-License-Identifier: MIT
//
// What a semaphore leaves in the tree.
#include "patient.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/zookeeper_server.hpp"
#include "support/zookeeper_tree.hpp"

#include <holdfast/zookeeper.hpp>

#include <atomic>
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
        if (nodes.queueing == queueing::none) {
            auto slots = tree.children("/app");  // the slots themselves, while they are held
            std::erase(slots, "jobs#max");
            return slots;
        }
        auto all = tree.children("/app/jobs#0");
        for (auto& one : tree.children("/app/jobs#1")) all.push_back(std::move(one));
        return all;
    };
    auto const marks = [&] { return tree.children("/app/jobs#max").size(); };
    leased_permit one{holder};
    leased_permit const two{holder};
    CHECK(marks() == 1);
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
    // It leaves the queue of the slot that it did not get in the background. The holder watches its mark.
    CHECK(eventually([&] { return server.ask("wchs").find("Total watches:1") != std::string::npos; }));
    CHECK(eventually([&] { return all_nodes().size() == 1; }));
    CHECK(eventually([&] { return marks() == 1; }));  // the holder's: the rival uses it no more
}

TEST_CASE("sessions with different numbers of permits never take slots together")
{
    zookeeper_server server;
    auto here = connected(server.address());
    auto there = connected(server.address());
    std::atomic<int> inside{0};  // those of 2 permits; negative: of 3
    std::atomic<bool> good{true};
    std::atomic<int> told{0};
    std::atomic<int> taken{0};
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&, i] {
            int const sign = i % 2 == 0 ? 1 : -1;
            for (int n = 0; n < 10; ++n) {
                semaphore jobs{i % 2 == 0 ? here : there, "/app/jobs", i % 2 == 0 ? 2 : 3};
                try {
                    leased_permit const one{jobs, 1min};
                    if (!one) continue;
                    ++taken;
                    if ((inside += sign) * sign <= 0) good = false;
                    std::this_thread::sleep_for(5ms);
                    inside -= sign;
                } catch (holdfast::error const& e) {
                    ++told;
                    CHECK(e.code() == holdfast::errc::misconfigured);
                }
            }
        });
    threads.clear();
    CHECK(good);
    CHECK(taken > 0);
    CHECK(told + taken <= 40);
    zookeeper_tree tree{server.address()};
    CHECK(eventually([&] { return tree.children("/app/jobs#max").empty(); }));  // whatever happened to them
}
