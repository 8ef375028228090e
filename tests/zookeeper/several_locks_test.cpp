// SPDX-License-Identifier: MIT
#include "patient.hpp"
#include "support/catch.hpp"
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
#include <thread>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::multi_mutex;
using holdfast::test::child;
using holdfast::test::connected;
using holdfast::test::eventually;
using holdfast::test::shared;
using holdfast::test::zookeeper_server;
using holdfast::zookeeper::mutex;

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
