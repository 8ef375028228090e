// SPDX-License-Identifier: MIT
//
// P6: from `unlock()` in one process to the return of the waiter's `lock()` in another, in round trips of a bare PING.
// Both are asked of a machine that was idle a moment before: the waiter has to be asleep, and the PING is to pay for
// the same waking-up of the processors.
#include "bare_redis.hpp"
#include "paired.hpp"
#include "support/process.hpp"
#include "support/redis_server.hpp"
#include "support/shared.hpp"
#include "workloads.hpp"

#include <holdfast/redis.hpp>

#include <semaphore.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <stdexcept>
#include <thread>

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
    process_semaphore go;                 ///< the lock is held: wait for it
    process_semaphore done;               ///< the waiter had it, and has given it back
    std::atomic<std::int64_t> locked{0};  ///< when the waiter's `lock()` returned
};

}  // namespace

void handover(run_options const& options, report& to)
{
    using namespace std::chrono_literals;
    constexpr auto time_to_fall_asleep = 5ms;
    schedule const turns{.repetitions = 7, .turns = options.quick ? 20 : 150, .warm_up = 20};
    test::redis_server server;
    test::shared<blackboard> board;

    auto waiter = test::child::fork([&]() -> int {
        redis::client client{server.url()};
        redis::mutex orders{client, "orders/42"};
        for (;;) {
            board->go.acquire();
            orders.lock();
            board->locked = nanoseconds_now();
            orders.unlock();
            board->done.release();
        }
    });

    redis::client client{server.url()};
    redis::mutex orders{client, "orders/42"};
    bare_redis bare{server.port()};
    auto const [taken, round_trip] = take_turns(
        turns,
        [&] {
            orders.lock();
            board->go.release();
            std::this_thread::sleep_for(time_to_fall_asleep);
            auto const before = nanoseconds_now();
            orders.unlock();
            board->done.acquire();
            if (board->locked <= before) throw std::runtime_error{"the waiter had the lock before it was given up"};
            return static_cast<double>(board->locked - before) * 1e-9;
        },
        [&] {
            std::this_thread::sleep_for(time_to_fall_asleep);
            return seconds_of([&] { bare.ping(); });
        });

    to.add(compare_times("P6", "unlock() → the lock() of a waiter in another process returns", "one bare round trip",
                         taken, round_trip, target::at_most(3)));
}

}  // namespace holdfast::benchmark
