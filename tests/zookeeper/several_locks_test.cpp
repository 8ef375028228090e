// SPDX-License-Identifier: MIT
#include "patient.hpp"
#include "support/async_outcome.hpp"
#include "support/catch.hpp"
#include "support/code_of.hpp"
#include "support/eventually.hpp"
#include "support/process.hpp"
#include "support/shared.hpp"
#include "support/zookeeper_server.hpp"

#include <holdfast/adapters/multi_mutex.hpp>
#include <holdfast/zookeeper.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <system_error>
#include <thread>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::multi_mutex;
using holdfast::test::async_outcome;
using holdfast::test::child;
using holdfast::test::code_of;
using holdfast::test::connected;
using holdfast::test::eventually;
using holdfast::test::shared;
using holdfast::test::zookeeper_server;
using holdfast::zookeeper::mutex;
using holdfast::zookeeper::naming;
using holdfast::zookeeper::node_options;
using holdfast::zookeeper::queueing;

TEST_CASE("one lock of two sessions that name the same servers in another order is one")
{
    zookeeper_server server;
    auto const here = server.address();
    auto const same = "localhost" + here.substr(here.rfind(':'));
    auto one = connected(here + ',' + same);
    auto other = connected(same + ',' + here);
    mutex a{one, "orders"};
    mutex b{other, "/orders"};
    multi_mutex both{a, b};
    CHECK(both.name() == "orders");
    REQUIRE(both.try_lock());
    CHECK(both.lease_of(a).fencing_token() == both.lease_of(b).fencing_token());
    mutex rival{other, "orders"};
    CHECK_FALSE(rival.try_lock());
}

TEST_CASE("a lock of two sessions that name their server differently is refused, in each form")
{
    auto const nodes =
        GENERATE(node_options{}, node_options{.naming = naming::kazoo}, node_options{.queueing = queueing::none});
    zookeeper_server server;
    auto const here = server.address();
    auto one = connected(here);
    auto other = connected("localhost" + here.substr(here.rfind(':')));
    mutex a{one, "orders", {}, nodes};
    mutex b{other, "orders", {}, nodes};
    multi_mutex both{a, b};
    auto const refused = std::errc::resource_deadlock_would_occur;
    CHECK(code_of([&] { static_cast<void>(both.try_lock()); }) == refused);
    CHECK(code_of([&] { both.lock(); }) == refused);
    async_outcome told;
    both.async_lock(told.hears());
    REQUIRE(told.comes());
    CHECK(told.code() == refused);
    REQUIRE(b.try_lock_for(1min));
}

TEST_CASE("a lock is not taken for one of that name on another server, although both have nodes of one czxid")
{
    auto const nodes = GENERATE(node_options{}, node_options{.queueing = queueing::none});
    zookeeper_server first;
    zookeeper_server second;
    auto one = connected(first.address());
    auto other = connected(second.address());
    mutex a{one, "orders", {}, nodes};
    mutex b{other, "orders", {}, nodes};
    mutex theirs{other, "orders", {}, nodes};
    theirs.lock();
    multi_mutex both{a, b};
    CHECK_FALSE(both.try_lock());
    CHECK_FALSE(both.try_lock_for(1ms));
    theirs.unlock();
    CHECK(both.try_lock_for(1min));
}

TEST_CASE("two processes that take three locks in opposite orders do not keep in step")
{
    struct tally {
        std::array<std::atomic<int>, 2> taken{};
        std::atomic<bool> second_takes_part{false};
        std::atomic<bool> stop{false};
    };
    zookeeper_server server;
    shared<tally> of;
    std::array<child, 2> processes;
    for (std::size_t i = 0; i < 2; ++i)
        processes[i] = child::fork([&, i] {
            auto session = connected(server.address());
            mutex a{session, "a"};
            mutex b{session, "b"};
            mutex c{session, "c"};
            while (!of->stop) {
                if (i == 0) {
                    std::scoped_lock const hold{a, b, c};
                    ++of->taken[i];
                } else if (of->second_takes_part) {
                    std::scoped_lock const hold{c, b, a};
                    ++of->taken[i];
                } else {
                    std::this_thread::sleep_for(1ms);
                }
            }
            return 0;
        });
    auto const time_of_a_hundred = [&] {
        auto const taken = [&] { return of->taken[0] + of->taken[1]; };
        auto const before = taken();
        auto const begun = boot_clock::now();
        CHECK(eventually([&] { return taken() - before >= 100; }, 2min));
        return boot_clock::now() - begun;
    };
    bool in_step = true;
    for (int i = 0; in_step && i < 3; ++i) {  // a machine may have been busy with other things
        of->second_takes_part = false;
        CHECK(eventually([&] { return of->taken[0] > 20; }));
        auto const alone = time_of_a_hundred();
        of->second_takes_part = true;
        CHECK(eventually([&] { return of->taken[1] > 0; }));
        auto const together = time_of_a_hundred();
        in_step = together > 4 * alone;  // in step it is six times as long, and more
    }
    CHECK_FALSE(in_step);
    of->stop = true;
    for (auto& one : processes) CHECK(one.wait_for(2min) == 0);
}
