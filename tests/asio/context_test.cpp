// SPDX-License-Identifier: MIT
//
// An execution context that is destroyed before its calls have ended: handlers are destroyed with it, uncalled, and no
// lock is kept.
#include "stores.hpp"
#include "support/catch.hpp"
#include "support/process.hpp"

#include <holdfast/asio.hpp>

#include <asio/bind_executor.hpp>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/io_context.hpp>
#include <asio/thread_pool.hpp>
#include <asio/use_awaitable.hpp>

#include <sys/resource.h>
#include <sys/time.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <random>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using holdfast::async_lock;
using holdfast::async_lock_guard;
using holdfast::async_try_lock_for;
using holdfast::async_unlock;
using holdfast::test::child;
using holdfast::test::comes_free;
using holdfast::test::eventually;

namespace {

/// A handler on `io` that must not be called, and keeps `alive`.
auto never_called(asio::io_context& io, std::shared_ptr<int> alive)
{
    return asio::bind_executor(
        io, [alive = std::move(alive)](auto&&...) { FAIL("a handler of a context that was not run"); });
}

/// Returns: for how long this process has computed.
std::chrono::microseconds computed()
{
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    auto const of = [](timeval const& t) {
        return std::chrono::seconds{t.tv_sec} + std::chrono::microseconds{t.tv_usec};
    };
    return of(used.ru_utime) + of(used.ru_stime);
}

/// Returns: for how long this process computes in a second in which the test does nothing.
std::chrono::microseconds computed_in_a_second()
{
    auto const before = computed();
    std::this_thread::sleep_for(1s);
    return computed() - before;
}

/// A handler on `io` that the client's thread cannot move before `go` says so. It moves it to give it to the context.
class stuck_handler {
public:
    stuck_handler(std::thread::id test, std::promise<void>& moves, std::shared_future<void> go)
        : test_{test}, moves_{&moves}, go_{std::move(go)}
    {
    }
    stuck_handler(stuck_handler&& other) noexcept : test_{other.test_}, moves_{other.moves_}, go_{other.go_}
    {
        if (std::this_thread::get_id() == test_ || !moves_) return;
        std::exchange(moves_, nullptr)->set_value();
        go_.wait();
    }
    stuck_handler(stuck_handler const&) = delete;
    stuck_handler& operator=(stuck_handler const&) = delete;
    ~stuck_handler() = default;

    void operator()(std::error_code) const {}

private:
    std::thread::id test_;
    std::promise<void>* moves_;
    std::shared_future<void> go_;
};

}  // namespace

TEMPLATE_TEST_CASE("a context is destroyed while calls are pending", "", HOLDFAST_LOCKS)
{
    TestType locks;
    holdfast::mutex holder{GENERATE(true, false) ? *locks.one : *locks.other, "orders"};
    holdfast::mutex m{*locks.one, "orders"};
    holdfast::mutex second{*locks.one, "orders"};
    holder.lock();
    auto alive = std::make_shared<int>(0);
    std::weak_ptr<int> const seen = alive;
    {
        asio::io_context io;
        async_lock(m, never_called(io, alive));
        async_try_lock_for(second, 1h, never_called(io, alive));
        async_lock_guard(second, never_called(io, std::move(alive)));
    }
    CHECK(seen.expired());
    holder.unlock();
    CHECK(comes_free(locks, "orders"));
    CHECK_FALSE(m.lease().still_held());
}

TEMPLATE_TEST_CASE("a context is destroyed when a lock was granted and not told", "", HOLDFAST_LOCKS)
{
    TestType locks;
    holdfast::mutex m{*locks.one, "orders"};
    auto alive = std::make_shared<int>(0);
    std::weak_ptr<int> const seen = alive;
    {
        asio::io_context io;
        auto const form = GENERATE(0, 1, 2);
        if (form == 0) async_lock(m, never_called(io, std::move(alive)));
        if (form == 1) async_try_lock_for(m, 1h, never_called(io, std::move(alive)));
        if (form == 2) async_lock_guard(m, never_called(io, std::move(alive)));
        REQUIRE(eventually([&] { return m.lease().still_held(); }));
        std::this_thread::sleep_for(GENERATE(0ms, 5ms));
    }
    CHECK(seen.expired());
    CHECK(eventually([&] { return !m.lease().still_held(); }));  // the client's thread may be about to tell it
    CHECK(comes_free(locks, "orders"));
}

TEMPLATE_TEST_CASE("a lock that is granted to a context that is gone is free at once, whatever its min_hold", "",
                   HOLDFAST_LOCKS)
{
    TestType locks;
    holdfast::mutex m{*locks.one, "orders", {.min_hold = 30s}};
    auto const form = GENERATE(0, 1, 2);
    {
        asio::io_context io;
        if (form == 0) async_lock(m, never_called(io, {}));
        if (form == 1) async_try_lock_for(m, 1h, never_called(io, {}));
        if (form == 2) async_lock_guard(m, never_called(io, {}));
        REQUIRE(eventually([&] { return m.lease().still_held(); }));
    }
    holdfast::mutex rival{*locks.other, "orders"};
    auto const begun = holdfast::boot_clock::now();
    CHECK(rival.try_lock_for(1min));
    CHECK(holdfast::boot_clock::now() - begun < 25s);
}

TEMPLATE_TEST_CASE("a context is destroyed while a lock is given back", "", HOLDFAST_LOCKS)
{
    TestType locks;
    holdfast::mutex m{*locks.one, "orders"};
    m.lock();
    {
        asio::io_context io;
        async_unlock(m, never_called(io, nullptr));
    }
    CHECK(comes_free(locks, "orders"));
}

TEMPLATE_TEST_CASE("a context is destroyed with a coroutine that owns the mutex it waits for", "", HOLDFAST_LOCKS)
{
    TestType locks;
    holdfast::mutex holder{*locks.other, "orders"};
    bool const waits = GENERATE(true, false);
    if (waits) holder.lock();
    {
        asio::io_context io;
        asio::co_spawn(
            io,
            [&]() -> asio::awaitable<void> {
                holdfast::mutex own{*locks.one, "orders"};
                co_await async_lock(own, asio::use_awaitable);
                FAIL("a coroutine of a context that was not run");
            },
            asio::detached);
        io.poll_one();
        std::this_thread::sleep_for(5ms);
    }
    holder.unlock();
    CHECK(comes_free(locks, "orders"));
}

TEMPLATE_TEST_CASE("a context is destroyed at any moment of a call", "", HOLDFAST_LOCKS)
{
    TestType locks;
    std::mt19937 random{17};
    std::vector<std::unique_ptr<holdfast::mutex>> mutexes;
    for (int i = 0; i < 8; ++i)
        mutexes.push_back(std::make_unique<holdfast::mutex>(i % 2 == 0 ? *locks.one : *locks.other,
                                                            "orders/" + std::to_string(i / 4)));
    std::atomic<int> told{0};
    for (int i = 0; i < 300 || told == 0; ++i) {
        asio::io_context io;
        for (auto& m : mutexes)
            async_lock_guard(*m, asio::bind_executor(io, [&](std::error_code, holdfast::async_guard) { ++told; }));
        auto const pause = std::chrono::microseconds{random() % (i < 300 ? 400 : 100'000)};
        if (i % 3 == 0) {
            io.run_for(pause);
        } else {
            std::this_thread::sleep_for(pause);
        }
    }
    CHECK(told > 0);
    CHECK(comes_free(locks, "orders/0"));
    CHECK(comes_free(locks, "orders/1"));
}

TEMPLATE_TEST_CASE("a pool of threads is stopped and destroyed in the middle of its work", "", HOLDFAST_LOCKS)
{
    TestType locks;
    std::vector<std::unique_ptr<holdfast::mutex>> mutexes;
    for (int i = 0; i < 8; ++i)
        mutexes.push_back(std::make_unique<holdfast::mutex>(i % 2 == 0 ? *locks.one : *locks.other,
                                                            "orders/" + std::to_string(i / 4)));
    std::atomic<int> lost{0};
    for (int i = 0; i < 20; ++i) {
        asio::thread_pool pool{4};
        for (auto& m : mutexes)
            asio::co_spawn(
                pool,
                [&, &m = *m]() -> asio::awaitable<void> {
                    for (;;) {
                        auto hold = co_await async_lock_guard(m, asio::use_awaitable);
                        if (!hold.still_held()) ++lost;
                        co_await async_unlock(hold, asio::use_awaitable);
                    }
                },
                asio::detached);
        std::this_thread::sleep_for(5ms);
        pool.stop();
    }
    CHECK(lost == 0);
    CHECK(comes_free(locks, "orders/0"));
    CHECK(comes_free(locks, "orders/1"));
}

TEMPLATE_TEST_CASE("a forked child that ends its copies of what is pending does not disturb its parent", "",
                   HOLDFAST_LOCKS)
{
    TestType locks;
    holdfast::mutex holder{*locks.one, "orders"};
    holdfast::mutex elsewhere{*locks.other, "invoices"};
    holdfast::mutex in_line{*locks.one, "orders"};
    holdfast::mutex asking{*locks.one, "invoices"};
    holder.lock();
    elsewhere.lock();
    auto io = std::make_unique<asio::io_context>();
    std::atomic<int> told{0};
    std::stop_source stop;
    bool const with_context = GENERATE(true, false);
    if (with_context) {
        auto const counted = [&] { return asio::bind_executor(*io, [&](std::error_code ec) { told += ec ? 0 : 1; }); };
        async_lock(in_line, counted());
        async_lock(asking, counted());
    } else {
        auto const counted = [&](std::error_code ec) { told += ec ? 0 : 1; };
        in_line.async_lock(counted, stop.get_token());
        asking.async_lock(counted, stop.get_token());
    }
    auto born = child::fork([&] {
        io.reset();
        stop.request_stop();
        return 0;
    });
    CHECK(born.wait_for(1min) == 0);
    CHECK(computed_in_a_second() <
          250ms);  // a thread that is woken for nothing, again and again, computes all the time
    holder.unlock();
    elsewhere.unlock();
    CHECK(eventually([&] {
        io->restart();
        io->poll();
        return told == 2;
    }));
    in_line.unlock();
    asking.unlock();
}

TEST_CASE("a forked child destroys a context without a wait for the thread that is giving it a handler")
{
    holdfast::test::memory_locks locks;
    holdfast::mutex m{*locks.one, "orders"};
    auto io = std::make_unique<asio::io_context>();
    auto const alive = std::make_shared<int>(0);
    holdfast::mutex holder{*locks.other, "invoices"};
    holdfast::mutex waits{*locks.one, "invoices"};
    holder.lock();
    async_lock(waits, never_called(*io, alive));
    std::promise<void> moves;
    std::promise<void> go;
    async_lock(m, asio::bind_executor(*io, stuck_handler{std::this_thread::get_id(), moves, go.get_future().share()}));
    moves.get_future().wait();
    auto born = child::fork([&] {
        io.reset();
        return alive.use_count() == 1 ? 0 : 1;
    });
    CHECK(born.wait_for(1min) == 0);
    go.set_value();
    io->run_one();
    CHECK(m.lease().still_held());
    m.unlock();
    io.reset();
    holder.unlock();
}
