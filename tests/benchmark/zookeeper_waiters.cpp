// SPDX-License-Identifier: MIT
//
// P10: what a release costs a ZooKeeper server when 100 sessions wait for the lock: how many of them wake, and what all
// of them ask for.
#include "support/eventually.hpp"
#include "support/zookeeper_server.hpp"
#include "workloads.hpp"

#include <holdfast/zookeeper.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::benchmark {

void zookeeper_waiters(run_options const& options, report& to)
{
    using namespace std::chrono_literals;
    long const waiters = options.quick ? 20 : 100;
    long const repetitions = options.quick ? 3 : 7;
    constexpr long handovers = 5;
    test::zookeeper_server server;
    // Sessions that need not show that they live while this runs: all that the server is sent is about the lock.
    zookeeper::session_options const silent{.session_timeout = 1h};

    std::atomic<long> holders{0};
    std::counting_semaphore<> go_on{0};
    std::vector<std::unique_ptr<zookeeper::session>> sessions;
    std::vector<std::jthread> threads;
    for (long i = 0; i <= waiters; ++i) {
        sessions.push_back(std::make_unique<zookeeper::session>(server.address(), silent));
        threads.emplace_back([&, zk = sessions.back().get()] {
            zookeeper::mutex m{*zk, "/orders", {.unavailable_after = 5min}};
            m.lock();
            ++holders;
            go_on.acquire();
        });
    }
    auto const reach = [](auto condition) {
        if (!test::eventually(condition, 5min)) throw std::runtime_error{"the waiters do not get the lock"};
    };
    reach([&] { return server.watches() == waiters; });

    series requests;
    series woken;
    for (long i = 0; i < repetitions; ++i) {
        auto const packets = server.packets();
        auto const watches = server.watches();
        for (long n = 0; n < handovers; ++n) {
            auto const next = holders + 1;
            go_on.release();
            reach([&] { return holders == next; });
        }
        requests.push_back(static_cast<double>(server.packets() - packets - 2) /
                           handovers);  // less these two questions
        woken.push_back(static_cast<double>(watches - server.watches()) / handovers);
    }
    go_on.release(waiters + 1);
    threads.clear();

    auto const among = std::to_string(waiters) + " waiters on ZooKeeper: ";
    to.add({.workload = "P10",
            .what = among + "woken for a release",
            .values = woken,
            .unit = "waiters",
            .goal = target::at_most(1)});
    to.add({.workload = "P10",
            .what = among + "requests for a handover",
            .values = requests,
            .unit = "requests",
            .goal = target::at_most(4)});
}

}  // namespace holdfast::benchmark
