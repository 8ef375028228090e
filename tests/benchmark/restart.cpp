// SPDX-License-Identifier: MIT
//
// P14: 500 clients, each of which holds a lock and waits for another's, while the server is away and when it returns.
#include "processor_time.hpp"
#include "support/process.hpp"
#include "support/redis_server.hpp"
#include "support/shared.hpp"
#include "unnamed.hpp"
#include "workloads.hpp"

#include <holdfast/redis.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>

namespace holdfast::benchmark {
namespace {

using namespace std::chrono_literals;

struct blackboard {
    std::atomic<std::size_t> waiting{0};
    std::atomic<std::size_t> granted{0};
    std::atomic<bool> stop{false};
};

int hold_and_wait(std::string const& url, std::size_t count, blackboard& board)
{
    std::deque<redis::client> clients;
    std::deque<mutex> held;
    std::deque<mutex> wanted;
    auto const name = [&](std::size_t i) { return "orders/" + std::to_string(i % count); };
    for (std::size_t i = 0; i < count; ++i) held.emplace_back(clients.emplace_back(url, unnamed), name(i)).lock();
    for (std::size_t i = 0; i < count; ++i) {
        wanted.emplace_back(clients[i], name(i + 1), lock_options{.unavailable_after = 5min});
        wanted.back().async_lock([&](std::error_code ec) {
            if (!ec) ++board.granted;
        });
        ++board.waiting;
    }
    while (!board.stop) std::this_thread::sleep_for(10ms);
    return 0;
}

}  // namespace

void restart(run_options const& options, report& to)
{
    std::size_t const count = options.quick ? 20 : 500;
    auto const away = options.quick ? 1s : 5s;
    series loads;
    series delays;
    for (int repetition = 0; repetition < (options.quick ? 1 : 3); ++repetition) {
        test::redis_server server;
        test::shared<blackboard> board;
        auto clients = test::child::fork([&] { return hold_and_wait(server.url(), count, *board); });
        auto const reach = [&](std::atomic<std::size_t> const& number) {
            for (auto const limit = std::chrono::steady_clock::now() + 2min; number < count;) {
                if (std::chrono::steady_clock::now() > limit || !clients.running())
                    throw std::runtime_error{"500 clients do not get their locks"};
                std::this_thread::sleep_for(1ms);
            }
        };
        reach(board->waiting);
        std::this_thread::sleep_for(3s);
        server.kill();
        auto const before = processor_seconds(clients.pid());
        std::this_thread::sleep_for(away);
        loads.push_back(100 * (processor_seconds(clients.pid()) - before) / static_cast<double>(away.count()));
        server.restart();
        delays.push_back(seconds_of([&] { reach(board->granted); }));
        board->stop = true;
        clients.kill();
    }
    to.add({.workload = "P14",
            .what = "500 clients, while their server is away: load of a processor",
            .values = loads,
            .unit = " %",
            .goal = target::at_most(10)});
    to.add({.workload = "P14",
            .what = "500 waiters: seconds from the return of their server, empty, until all have their locks",
            .values = delays,
            .unit = " s",
            .goal = target::at_most(1)});
}

}  // namespace holdfast::benchmark
