// SPDX-License-Identifier: MIT
//
// P13: how often a process wakes that has a client and does nothing with it, holds a lock, or waits for some. On
// ZooKeeper beside one that has a session by the bare C client, whose two threads wake for its pings.
#include "masters.hpp"
#include "paired.hpp"
#include "support/process.hpp"
#include "support/redis_server.hpp"
#include "support/shared.hpp"
#include "unnamed.hpp"
#include "workloads.hpp"
#ifdef HOLDFAST_BENCHMARK_ZOOKEEPER
#include "bare_zookeeper.hpp"
#include "support/zookeeper_server.hpp"

#include <holdfast/zookeeper.hpp>
#endif

#include <holdfast/redis.hpp>
#include <holdfast/redlock.hpp>

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iomanip>
#include <list>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::benchmark {
namespace {

using namespace std::chrono_literals;

/// Returns: how often the threads of the process have slept.
long sleeps_of(::pid_t process)
{
    long all = 0;
    std::string const field = "voluntary_ctxt_switches:";
    for (auto const& thread : std::filesystem::directory_iterator{"/proc/" + std::to_string(process) + "/task"}) {
        std::ifstream status{thread.path() / "status"};
        for (std::string line; std::getline(status, line);)
            if (line.starts_with(field)) all += std::stol(line.substr(field.size()));
    }
    return all;
}

[[nodiscard]] std::string two_places(double x)
{
    std::ostringstream out;
    out << std::fixed << std::setprecision(2) << x;
    return out.str();
}

/// One that does next to nothing, in a process of its own.
struct sleeper {
    std::string what;
    std::optional<double> most = {};  ///< wake-ups a second that it may have; nothing: it is not looked at
    test::child process;
    std::string least = {};  ///< what the processes after it are compared with, if it is one that does the least
    long before = 0;
    series often = {};  ///< how often it woke a second, in each repetition
};

struct blackboard {
    std::atomic<unsigned> ready{0};
};

[[nodiscard]] std::string name_of(unsigned i) { return "/orders-" + std::to_string(i); }

/// Effects: stays as it is, until it is killed.
[[noreturn]] void rest()
{
    for (;;) ::pause();
}

int use_once(store const& client, lock_options const& options, blackboard& board)
{
    mutex m{client, "/warm-up", options};
    m.lock();
    m.unlock();
    ++board.ready;
    rest();
}

int hold(store const& client, unsigned locks, unsigned first, lock_options const& options, blackboard& board)
{
    std::list<mutex> all;
    for (unsigned i = 0; i < locks; ++i) all.emplace_back(client, name_of(first + i), options).lock();
    ++board.ready;
    rest();
}

int wait(store const& client, unsigned locks, unsigned first, lock_options options, blackboard& board)
{
    options.unavailable_after = 5min;
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < locks; ++i)
        threads.emplace_back([&, i] {
            mutex m{client, name_of(first + i), options};
            m.lock();
        });
    ++board.ready;
    rest();
}

/// Effects: adds a process that does `run`, when that has counted itself on the board.
sleeper& begin(std::list<sleeper>& all, std::string what, blackboard const& board, std::function<int()> const& run)
{
    auto const before = board.ready.load();
    auto& made = all.emplace_back(sleeper{.what = std::move(what), .process = test::child::fork(run)});
    for (int i = 0; board.ready == before; ++i) {
        if (i == 6000) throw std::runtime_error{"a process is not ready"};
        std::this_thread::sleep_for(10ms);
    }
    return made;
}

/// Effects: adds the sleepers of one store.
void add(std::list<sleeper>& all, std::string const& name, std::function<store()> const& connect,
         lock_options const& options, blackboard& board)
{
    constexpr unsigned most_locks = 11;
    auto const begin = [&](std::string const& what, std::optional<double> most, std::function<int(store const&)> run) {
        benchmark::begin(all, name + ": " + what, board, [&] { return run(connect()); }).most = most;
    };
    begin("a client, and no lock", 0.1, [&](store const& s) { return use_once(s, options, board); });
    begin("a held lock", 0.3, [&](store const& s) { return hold(s, 1, most_locks, options, board); });
    begin("what the others wait for", {}, [&](store const& s) { return hold(s, most_locks, 0, options, board); });
    begin("a waiter", 0.5, [&](store const& s) { return wait(s, 1, 0, options, board); });
    begin("ten waiters", 5, [&](store const& s) { return wait(s, 10, 1, options, board); });
}

}  // namespace

void idle(run_options const& options, report& to)
{
    test::redis_server server;
    masters_in_service masters{options.quick ? 5s : 30s};
    lock_options const locks{.ttl = masters.guard};
    test::shared<blackboard> board;
    std::list<sleeper> all;
    add(
        all, "one Redis",
        [&]() -> store {
            return redis::client{server.url(), unnamed};
        },
        locks, *board);
    add(
        all, "five masters",
        [&]() -> store {
            return redlock::masters{masters.urls(), unnamed_masters(masters.guard)};
        },
        locks, *board);
#ifdef HOLDFAST_BENCHMARK_ZOOKEEPER
    test::zookeeper_server zookeeper;
    auto& bare = begin(all, "ZooKeeper: the C client alone", *board, [&]() -> int {
        bare_zookeeper_lock const session{zookeeper.address(), "/bare"};
        ++board->ready;
        rest();
    });
    bare.least = "the C client alone, with a session of the same timeout";
    add(
        all, "ZooKeeper", [&]() -> store { return zookeeper::session{zookeeper.address()}; }, locks, *board);
#endif
    std::this_thread::sleep_for(options.quick ? 1s : 10s);
    for (int repetition = 0; repetition < (options.quick ? 1 : 3); ++repetition) {
        auto const begun = std::chrono::steady_clock::now();
        for (auto& one : all) one.before = sleeps_of(one.process.pid());
        std::this_thread::sleep_for(options.quick ? 3s : 30s);
        for (auto& one : all) {
            std::chrono::duration<double> const time = std::chrono::steady_clock::now() - begun;
            one.often.push_back(static_cast<double>(sleeps_of(one.process.pid()) - one.before) / time.count());
        }
    }
    std::string rival;
    std::string least;
    for (auto& one : all) {
        if (!one.process.running()) throw std::runtime_error{one.what + ": the process has ended"};
        if (!one.least.empty()) {
            rival = one.least;
            least = two_places(median(one.often));
        }
        if (one.most)
            to.add({.workload = "P13",
                    .what = one.what + ": wake-ups a second",
                    .rival = rival,
                    .values = one.often,
                    .goal = target::at_most(*one.most),
                    .ours = least.empty() ? "" : two_places(median(one.often)),
                    .theirs = least});
    }
}

}  // namespace holdfast::benchmark
