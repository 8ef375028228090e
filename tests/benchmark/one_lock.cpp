// SPDX-License-Identifier: MIT
//
// P5: eight threads of one process that want one lock; against the same first-come queue of threads with nothing behind
// it. A section is the shortest that shows a lock which does not exclude; it does not end while nobody else wants the
// lock: where the kernel runs one thread for a whole time slice, that one would only measure how fast a lock is that
// nobody wants.
#include "crew.hpp"
#include "fair_mutex.hpp"
#include "paired.hpp"
#include "support/redis_server.hpp"
#include "unnamed.hpp"
#include "workloads.hpp"

#include <holdfast/redis.hpp>

#include <atomic>
#include <charconv>
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

namespace holdfast::benchmark {
namespace {

/// Returns: how many commands a client has sent. The server's statistics count also what scripts call, so only those
/// are looked at that holdfast sends and no script calls.
long long commands_sent(test::redis_server& server)
{
    auto const info = server.command({"INFO", "commandstats"}).text;
    long long sum = 0;
    for (std::string_view const name : {"evalsha", "eval", "subscribe", "unsubscribe"}) {
        auto const field = "cmdstat_" + std::string{name} + ":calls=";
        long long calls = 0;
        if (auto const at = info.find(field); at != std::string::npos)
            std::from_chars(info.data() + at + field.size(), info.data() + info.size(), calls);
        sum += calls;
    }
    return sum;
}

}  // namespace

void one_lock(run_options const& options, report& to)
{
    using namespace std::chrono_literals;
    constexpr unsigned threads = 8;
    auto const slice = options.quick ? 100ms : 400ms;
    schedule const turns{.repetitions = 7, .turns = options.quick ? 1 : 4, .warm_up = 1};
    test::redis_server server;
    redis::client client{server.url(), unnamed};
    lock_options const defaults;
    redis::mutex orders{client, "orders/42", defaults};
    fair_mutex queue;
    crew workers{threads};

    long long counted = 0;  // guarded by the lock that is measured
    std::atomic<int> waiting{0};
    auto const sections = [&](auto& lock) {
        auto const before = counted;
        auto const rate = workers.rate(
            [&](unsigned) {
                waiting.fetch_add(1, std::memory_order_relaxed);
                std::scoped_lock hold{lock};
                waiting.fetch_sub(1, std::memory_order_relaxed);
                counted = counted + 1;
                while (waiting.load(std::memory_order_relaxed) == 0 && !workers.stopping()) std::this_thread::yield();
            },
            slice);
        if (counted - before != workers.calls()) throw std::runtime_error{"two threads were in one section"};
        return rate;
    };
    series remote;
    auto const [ours, bare] = take_turns(
        turns,
        [&] {
            auto const sent = commands_sent(server);
            auto const rate = sections(orders);
            remote.push_back(static_cast<double>(commands_sent(server) - sent) * defaults.max_local_handoffs /
                             static_cast<double>(workers.calls()));
            return rate;
        },
        [&] { return sections(queue); });

    to.add(compare_rates("P5", "8 threads, one lock: sections", "the same queue of threads, nothing behind it", ours,
                         bare, target::at_least(0.7)));
    to.add({.workload = "P5",
            .what = "8 threads, one lock: sections",
            .values = ours,
            .unit = "/s",
            .goal = target::at_least(50'000)});
    to.add({.workload = "P5",
            .what = "remote calls in " + std::to_string(defaults.max_local_handoffs) + " sections (max_local_handoffs)",
            .values = remote,
            .unit = "calls",
            .goal = target::at_most(2)});
}

}  // namespace holdfast::benchmark
