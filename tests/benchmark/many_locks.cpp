// SPDX-License-Identifier: MIT
//
// P8: thousands of locks that one process holds: what their renewals cost it and the servers, whether any comes late or
// is lost, also after a pause of the process or of the servers, and what another lock notices of them.
#include "bare_redis.hpp"
#include "masters.hpp"
#include "paired.hpp"
#include "processor_time.hpp"
#include "support/process.hpp"
#include "support/redis_server.hpp"
#include "support/shared.hpp"
#include "unnamed.hpp"
#include "workloads.hpp"

#include <holdfast/redis.hpp>
#include <holdfast/redis/scripts.hpp>
#include <holdfast/redlock.hpp>

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::benchmark {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

/// Where the locks are.
struct place {
    std::string name;
    std::size_t locks;
    std::chrono::milliseconds ttl;
    std::vector<test::redis_server*> servers;
    std::function<store()> connect;
    bool disturbed_again = true;  ///< the pause and the outages are in each repetition; otherwise only in the first
};

[[nodiscard]] std::string key_of(std::size_t i) { return "orders/" + std::to_string(i); }

/// What the process with the locks says of itself.
struct blackboard {
    std::atomic<bool> ready{false};
    std::atomic<bool> beside{false};  ///< another lock is taken and given back meanwhile
    std::atomic<bool> stop{false};
    std::atomic<std::int64_t> idle_bytes{0};  ///< of a lock
    std::atomic<std::int64_t> held_bytes{0};
    std::atomic<std::int64_t> used_bytes{0};    ///< of a lock that was held before
    std::atomic<std::int64_t> least_left{100};  ///< of any lease, in hundredths of its ttl
    std::atomic<std::int64_t> lost{0};
    std::atomic<std::int64_t> p99{0};  ///< of the other lock, in ns
};

[[nodiscard]] std::int64_t heap_bytes() { return static_cast<std::int64_t>(::mallinfo2().uordblks); }

/// Effects: takes and gives back another lock, until the process is to stop.
void use_another_lock(store const& client, lock_options const& options, blackboard& board)
{
    mutex other{client, "another", options};
    std::vector<std::int64_t> took;
    while (!board.stop) {
        std::this_thread::sleep_for(2ms);
        if (!board.beside) continue;
        auto const begun = clock::now();
        other.lock();
        other.unlock();
        took.push_back(std::chrono::nanoseconds{clock::now() - begun}.count());
    }
    if (took.empty()) return;
    auto const at = took.begin() + static_cast<std::ptrdiff_t>(took.size() * 99 / 100);
    std::nth_element(took.begin(), at, took.end());
    board.p99 = *at;
}

int hold_many(place const& at, blackboard& board)
{
    auto const client = at.connect();
    lock_options const options{.ttl = at.ttl};
    {
        mutex warm{client, "warm-up", options};
        warm.lock();
        warm.unlock();
    }
    std::vector<std::unique_ptr<mutex>> locks;
    std::vector<leased_lock<mutex>> holds;
    locks.reserve(at.locks);
    holds.reserve(at.locks);
    auto const before = heap_bytes();
    for (std::size_t i = 0; i < at.locks; ++i) locks.push_back(std::make_unique<mutex>(client, key_of(i), options));
    auto const each = static_cast<std::int64_t>(at.locks);
    board.idle_bytes = (heap_bytes() - before) / each;
    for (auto const& one : locks) holds.emplace_back(*one);
    std::this_thread::sleep_for(50ms);
    board.held_bytes = (heap_bytes() - before) / each;
    std::thread other{[&] { use_another_lock(client, options, board); }};
    board.ready = true;
    while (!board.stop) {
        std::this_thread::sleep_for(at.ttl / 20);
        if (!board.beside) continue;
        auto least = board.least_left.load();
        for (auto const& one : holds) least = std::min<std::int64_t>(least, 100 * one.remaining() / at.ttl);
        if (board.beside) board.least_left = least;  // not if the process was stopped meanwhile
    }
    other.join();
    for (auto const& one : holds)
        if (!one.still_held()) ++board.lost;
    holds.clear();
    std::this_thread::sleep_for(1s);  // the releases are answered
    board.used_bytes = (heap_bytes() - before) / each;
    return 0;
}

/// Effects: renews as many keys, in batches over the time in which each of ours is due once.
int renew_bare(place const& at, blackboard& board)
{
    constexpr std::size_t batch = 64;
    std::deque<bare_redis> nodes;
    bare_token const token;
    std::vector<std::string> keys;
    for (std::size_t i = 0; i < at.locks; ++i) keys.push_back(key_of(i));
    std::string const ttl = std::to_string(10 * at.ttl.count());  // none ends if the machine is busy meanwhile
    std::string const sha1{redis::scripts::extend.sha1};
    for (auto* const server : at.servers) {
        server->command({"SCRIPT", "LOAD", redis::scripts::extend.text()});
        auto& node = nodes.emplace_back(server->port());
        for (std::size_t first = 0; first < keys.size(); first += batch) {
            auto const last = std::min(first + batch, keys.size());
            for (auto i = first; i < last; ++i) node.append({"SET", keys[i], token.view(), "PX", ttl});
            for (auto i = first; i < last; ++i) node.expect_yes();
        }
    }
    board.ready = true;
    auto next = clock::now();
    for (std::size_t first = 0; !board.stop; first = first + batch < keys.size() ? first + batch : 0) {
        auto const last = std::min(first + batch, keys.size());
        for (auto& node : nodes) {
            for (auto i = first; i < last; ++i) node.append({"EVALSHA", sha1, "1", keys[i], token.view(), ttl});
            node.flush();
        }
        for (auto& node : nodes)
            for (auto i = first; i < last; ++i) node.expect_yes();
        next += std::chrono::nanoseconds{at.ttl} / 3 * (last - first) / keys.size();
        std::this_thread::sleep_until(next);
    }
    return 0;
}

struct costs {
    double client = 0;  ///< seconds of a processor for a renewal
    double servers = 0;
};

/// Effects: waits until the process has its locks. Returns: what a renewal costs it and the servers, over `time`.
costs costs_of(place const& at, test::child& process, blackboard& board, std::chrono::milliseconds time)
{
    for (auto const limit = clock::now() + 5min; !board.ready;) {
        if (clock::now() > limit || !process.running()) throw std::runtime_error{"a process does not get its locks"};
        std::this_thread::sleep_for(10ms);
    }
    std::this_thread::sleep_for(at.ttl / 2);
    auto const of_servers = [&] {
        double all = 0;
        for (auto const* const one : at.servers) all += processor_seconds(one->pid());
        return all;
    };
    auto const client = processor_seconds(process.pid());
    auto const servers = of_servers();
    auto const begun = clock::now();
    std::this_thread::sleep_for(time);
    auto const thirds = (clock::now() - begun) / std::chrono::duration<double>{at.ttl} * 3;
    auto const renewals = thirds * static_cast<double>(at.locks);
    return {(processor_seconds(process.pid()) - client) / renewals, (of_servers() - servers) / renewals};
}

costs costs_of_bare(place const& at, std::chrono::milliseconds time)
{
    test::shared<blackboard> board;
    auto process = test::child::fork([&] { return renew_bare(at, *board); });
    auto const found = costs_of(at, process, *board, time);
    board->stop = true;
    if (process.wait() != 0) throw std::runtime_error{"the bare pipeline failed"};
    return found;
}

/// Effects: stops the process for a while, then the servers, and restarts one of several masters.
void disturb(place const& at, test::child& process)
{
    process.pause();
    std::this_thread::sleep_for(at.ttl / 2);
    process.resume();
    std::this_thread::sleep_for(at.ttl);
    for (auto* const one : at.servers) one->pause();
    std::this_thread::sleep_for(at.ttl / 3);
    for (auto* const one : at.servers) one->resume();
    std::this_thread::sleep_for(at.ttl);
    if (at.servers.size() > 1) {
        at.servers.front()->restart();
        std::this_thread::sleep_for(at.ttl);
    }
}

/// A figure of each repetition.
struct figures {
    series client;
    series servers;
    series bare_client;
    series bare_servers;
    series least_left;
    series p99;
    series idle_bytes;
    series held_bytes;
    series used_bytes;
    double lost = 0;  ///< in all of them
};

/// Effects: measures once, in turn with the bare pipeline.
void measure_once(run_options const& options, place const& at, bool disturbed, figures& to)
{
    auto const rounds = at.ttl / 3 * 2;  // in which each lock is renewed twice
    auto const time = options.quick ? at.ttl : std::max<std::chrono::milliseconds>(10s, rounds);
    auto const forget = [&] {
        for (auto* const one : at.servers) one->command({"FLUSHALL"});
    };
    forget();
    auto const bare = costs_of_bare(at, time);
    to.bare_client.push_back(bare.client);
    to.bare_servers.push_back(bare.servers);
    forget();

    test::shared<blackboard> board;
    auto process = test::child::fork([&] { return hold_many(at, *board); });
    auto const ours = costs_of(at, process, *board, time);
    to.client.push_back(ours.client);
    to.servers.push_back(ours.servers);
    board->beside = true;
    std::this_thread::sleep_for(options.quick ? at.ttl : std::max<std::chrono::milliseconds>(10s, rounds / 2));
    board->beside = false;
    if (disturbed) disturb(at, process);
    board->stop = true;
    if (process.wait() != 0) throw std::runtime_error{"the process with the locks failed"};

    auto const number = [](std::atomic<std::int64_t> const& n) { return static_cast<double>(n.load()); };
    to.least_left.push_back(number(board->least_left) / 100);
    to.p99.push_back(number(board->p99) * 1e-6);
    to.idle_bytes.push_back(number(board->idle_bytes));
    to.held_bytes.push_back(number(board->held_bytes));
    to.used_bytes.push_back(number(board->used_bytes));
    to.lost += number(board->lost);
}

void measure(run_options const& options, report& to, place const& at)
{
    figures found;
    int const repetitions = options.quick ? 1 : 3;
    for (int i = 0; i < repetitions; ++i) measure_once(options, at, i == 0 || at.disturbed_again, found);

    auto const figure = [&](std::string const& what, series values, std::string unit, std::optional<target> goal) {
        to.add({.workload = "P8",
                .what = at.name + ": " + what,
                .values = std::move(values),
                .unit = std::move(unit),
                .goal = goal});
    };
    std::string const rival = "hiredis, 64 renewals at a time, a script for each";
    to.add(compare_times("P8", at.name + ": client's processor time for a renewal", rival, found.client,
                         found.bare_client, target::at_most(3)));
    to.add(compare_times("P8", at.name + ": servers' processor time for a renewal", rival, found.servers,
                         found.bare_servers, target::at_most(1.3)));
    // Of these two the worst counts, not the median.
    figure("lost leases, after a pause of ttl / 2, an outage of ttl / 3" +
               std::string{at.servers.size() > 1 ? ", and the restart of one master" : ""},
           {found.lost}, "", target::at_most(0));
    figure("least that was left of a lease, in ttl",
           {*std::min_element(found.least_left.begin(), found.least_left.end())}, "", target::at_least(0.33));
    figure("p99 of lock + unlock of another lock meanwhile", found.p99, " ms", target::at_most(5));
    figure("bytes of an idle mutex", found.idle_bytes, " B", target::at_most(512));
    figure("bytes of an idle mutex that was held before", found.used_bytes, " B", target::at_most(512));
    figure("bytes of a held lock", found.held_bytes, " B", target::at_most(1024));
}

}  // namespace

void many_locks(run_options const& options, report& to)
{
    {
        test::redis_server server;
        auto const connect = [&]() -> store { return redis::client{server.url(), unnamed}; };
        auto const some = options.quick ? std::size_t{500} : std::size_t{10'000};
        measure(options, to, {"one Redis, 10,000 locks, ttl 3 s", some, 3s, {&server}, connect});
        if (!options.quick)
            measure(options, to,
                    {.name = "one Redis, 100,000 locks, ttl 30 s",
                     .locks = 100'000,
                     .ttl = 30s,
                     .servers = {&server},
                     .connect = connect,
                     .disturbed_again = false});
    }
    masters_in_service masters{6s};
    measure(options, to,
            {"five masters, 10,000 locks, ttl 6 s", options.quick ? std::size_t{500} : std::size_t{10'000}, 6s,
             masters.servers(), [&]() -> store {
                 return redlock::masters{masters.urls(), unnamed_masters(masters.guard)};
             }});
}

}  // namespace holdfast::benchmark
