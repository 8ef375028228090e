// SPDX-License-Identifier: MIT
//
// What a semaphore leaves in the tree.
#include "patient.hpp"
#include "support/catch.hpp"
#include "support/code_of.hpp"
#include "support/eventually.hpp"
#include "support/proxy.hpp"
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
using holdfast::errc;
using holdfast::leased_permit;
using holdfast::test::code_of;
using holdfast::test::connected;
using holdfast::test::eventually;
using holdfast::test::of;
using holdfast::test::proxy;
using holdfast::test::zookeeper_packets;
using holdfast::test::zookeeper_request;
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
    auto const slot = one.slot();
    auto const token = one.fencing_token();
    bool same_slot = false;
    bool greater_token = false;
    std::jthread waiter{[&] {
        leased_permit const third{*rival};
        same_slot = third.slot() == slot;
        greater_token = third.fencing_token() > token;
    }};
    CHECK(eventually([&] { return there.stats().waiting == 1; }));
    one.release();
    waiter.join();
    CHECK(same_slot);
    CHECK(greater_token);
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
                    if (e.code() != holdfast::errc::misconfigured) good = false;
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

TEST_CASE("whatever answer to a change of the number of permits is lost, the number is changed, and one mark says so",
          "[lesson-15]")
{
    using op = zookeeper_request;
    zookeeper_server server;
    proxy way{server.port(), zookeeper_packets};
    auto here = connected(server.address());
    auto there = connected(way.address(), {.session_timeout = 1min});
    zookeeper_tree tree{server.address()};
    semaphore ours{there, "/app/jobs", 2};
    auto const marks = [&] { return tree.children("/app/jobs#max"); };
    int faults = 0;
    for (auto const what : {op::create, op::get_children, op::erase, op::set_data})
        for (bool const swallow : {true, false}) {
            CAPTURE(static_cast<int>(what), swallow);
            auto const from = ours.max();
            auto const to = from == 2 ? 3 : 2;
            semaphore theirs{here, "/app/jobs", from};
            leased_permit const held{theirs, 1min};
            REQUIRE(held);
            if (swallow)
                way.swallow_next_reply({.matches = of(what)});
            else
                way.drop_next_request({.matches = of(what)});
            ++faults;
            ours.resize(to);
            CHECK(ours.max() == to);
            CHECK(way.struck() == faults);
            CHECK(held.still_held());
            CHECK(ours.permits_in_use() == 1);
            CHECK(eventually([&] { return marks().size() == 1; }));
            CHECK(marks().front().ends_with('-' + std::to_string(to)));
            CHECK(code_of([&] { static_cast<void>(theirs.try_acquire()); }) == errc::misconfigured);
        }
    leased_permit const all{ours, 1min};
    CHECK(all.still_held());
}

TEST_CASE("a change of the number of permits without an answer is said to be in doubt, and can be made again")
{
    zookeeper_server server;
    proxy way{server.port(), zookeeper_packets};
    auto zk = connected(way.address(), {.session_timeout = 1min, .operation_timeout = 500ms});
    zookeeper_tree tree{server.address()};
    semaphore jobs{zk, "/app/jobs", 2};
    std::error_code ec;
    way.hold(of(zookeeper_request::create));
    jobs.resize(3, ec);
    CHECK(ec == errc::outcome_unknown);
    way.let_go();
    CHECK(eventually([&] {  // who has so little time may get no answer
        jobs.resize(3, ec);
        return !ec;
    }));
    CHECK(jobs.max() == 3);
    CHECK(eventually([&] { return tree.children("/app/jobs#max").size() == 1; }));
    CHECK(tree.children("/app/jobs#max").front().ends_with("-3"));
}
