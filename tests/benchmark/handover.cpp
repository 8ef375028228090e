// SPDX-License-Identifier: MIT
//
// P6: from `unlock()` in one process to the return of the waiter's `lock()` in another, in round trips of a bare PING,
// of a server here, and of one and five that are 2 ms away. Both are asked of a machine that was idle a moment before:
// the waiter has to be asleep, and the PING is to pay for the same waking-up of the processors.
#include "bare_redis.hpp"
#include "distance.hpp"
#include "masters.hpp"
#include "paired.hpp"
#include "support/process.hpp"
#include "support/redis_server.hpp"
#include "support/shared.hpp"
#include "unnamed.hpp"
#include "workloads.hpp"

#include <holdfast/redis.hpp>
#include <holdfast/redlock.hpp>

#include <semaphore.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::benchmark {
namespace {

/// CLOCK_MONOTONIC is the same in all processes.
std::int64_t nanoseconds_now()
{
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

class process_semaphore {
public:
    process_semaphore() { ::sem_init(&semaphore_, 1, 0); }
    void release() { ::sem_post(&semaphore_); }

    /// Throws: std::runtime_error after a time in which the other process must have died.
    void acquire()
    {
        ::timespec limit{};
        ::clock_gettime(CLOCK_REALTIME, &limit);
        limit.tv_sec += 60;
        while (::sem_timedwait(&semaphore_, &limit) != 0)
            if (errno != EINTR) throw std::runtime_error{"the other process does not answer"};
    }

private:
    ::sem_t semaphore_{};
};

struct blackboard {
    process_semaphore go;                    ///< the lock is held: wait for it
    process_semaphore done;                  ///< the waiter had it, and has given it back
    std::atomic<std::int64_t> locked{0};     ///< when the waiter's `lock()` returned
    std::array<std::uint16_t, 5> servers{};  ///< written before the first `go`
};

/// Servers, and how the lock on them is made.
struct place {
    std::string name;
    std::vector<std::uint16_t> servers;
    std::chrono::seconds guard{0};  ///< after a restart of one of several masters
    bool far = false;               ///< 1 ms away, each way
    std::optional<target> goal = target::at_most(3);
};

/// A lock with the client that it needs. `servers` are the ports of one Redis or of the masters of a Redlock.
class lock_on {
public:
    lock_on(std::vector<std::uint16_t> const& servers, std::chrono::seconds guard)
    {
        std::vector<std::string> urls;
        for (auto const port : servers) urls.push_back("redis://127.0.0.1:" + std::to_string(port));
        if (urls.size() == 1)
            lock_ = std::make_unique<redis::mutex>(redis_.emplace(urls[0], unnamed), "orders/42");
        else
            lock_ = std::make_unique<redlock::mutex>(masters_.emplace(urls, unnamed_masters(guard)), "orders/42",
                                                     lock_options{.ttl = guard});
    }

    mutex& operator*() noexcept { return *lock_; }

private:
    std::optional<redis::client> redis_;
    std::optional<redlock::masters> masters_;
    std::unique_ptr<mutex> lock_;
};

void measure(run_options const& options, report& to, place const& at)
{
    using namespace std::chrono_literals;
    constexpr auto time_to_fall_asleep = 5ms;
    schedule const turns{.repetitions = 7, .turns = options.quick ? 20 : at.far ? 60 : 150, .warm_up = 20};
    test::shared<blackboard> board;

    // Forked before the proxies, which are threads of this process.
    auto waiter = test::child::fork([&]() -> int {
        std::optional<lock_on> orders;
        for (;;) {
            board->go.acquire();
            if (!orders)
                orders.emplace(std::vector(board->servers.begin(), board->servers.begin() + at.servers.size()),
                               at.guard);
            (**orders).lock();
            board->locked = nanoseconds_now();
            (**orders).unlock();
            board->done.release();
        }
    });

    auto servers = at.servers;
    std::optional<distance> between;
    if (at.far) servers = between.emplace(servers, 1000us).ports();
    std::copy(servers.begin(), servers.end(), board->servers.begin());
    lock_on orders{servers, at.guard};
    bare_redis bare{servers[0]};
    auto const [taken, round_trip] = take_turns(
        turns,
        [&] {
            (*orders).lock();
            board->go.release();
            std::this_thread::sleep_for(time_to_fall_asleep + (at.far ? 10ms : 0ms));
            auto const before = nanoseconds_now();
            (*orders).unlock();
            board->done.acquire();
            if (board->locked <= before) throw std::runtime_error{"the waiter had the lock before it was given up"};
            return static_cast<double>(board->locked - before) * 1e-9;
        },
        [&] {
            std::this_thread::sleep_for(time_to_fall_asleep);
            return seconds_of([&] { bare.ping(); });
        });

    to.add(compare_times("P6", "unlock() → the lock() of a waiter in another process returns" + at.name,
                         "one bare round trip", taken, round_trip, at.goal));
}

}  // namespace

void handover(run_options const& options, report& to)
{
    test::redis_server server;
    masters_in_service masters;
    measure(options, to, {.name = "", .servers = {server.port()}});
    measure(options, to,
            {.name = ", 2 ms away", .servers = {server.port()}, .far = true, .goal = target::at_most(2.2)});
    measure(options, to, {.name = ", five masters", .servers = masters.ports(), .guard = masters.guard, .goal = {}});
    measure(options, to,
            {.name = ", five masters 2 ms away",
             .servers = masters.ports(),
             .guard = masters.guard,
             .far = true,
             .goal = target::at_most(2.2)});
}

}  // namespace holdfast::benchmark
