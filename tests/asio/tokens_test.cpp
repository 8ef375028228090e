// SPDX-License-Identifier: MIT
//
// Callbacks, futures and coroutines, on one thread and on four.
#include "stores.hpp"
#include "support/catch.hpp"

#include <holdfast/asio.hpp>

#include <asio/awaitable.hpp>
#include <asio/bind_executor.hpp>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/experimental/as_tuple.hpp>
#include <asio/experimental/deferred.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/this_coro.hpp>
#include <asio/thread_pool.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/use_future.hpp>

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <tuple>
#include <vector>

using namespace std::chrono_literals;
using asio::use_awaitable;
using holdfast::async_guard;
using holdfast::async_lock;
using holdfast::async_lock_guard;
using holdfast::async_try_lock_for;
using holdfast::async_unlock;
using holdfast::test::code_of;
using holdfast::test::comes_free;

TEMPLATE_TEST_CASE("a handler is called by its executor with what came of the lock", "", HOLDFAST_LOCKS)
{
    TestType locks;
    holdfast::mutex m{*locks.one, "orders"};
    asio::io_context io;
    std::vector<std::string> said;
    auto const on_io = [&](auto f) { return asio::bind_executor(io, std::move(f)); };
    async_lock(m, on_io([&](std::error_code ec) {
                   said.push_back(ec ? ec.message() : "locked");
                   CHECK(m.lease().still_held());
                   async_try_lock_for(
                       m, 1ms, on_io([&](std::error_code passed, bool held) {
                           said.push_back(passed ? passed.message() : held ? "locked twice" : "not locked");
                           async_unlock(m, on_io([&](std::error_code lost) {
                                            said.push_back(lost ? lost.message() : "unlocked");
                                        }));
                       }));
               }));
    std::this_thread::sleep_for(10ms);
    CHECK(said.empty());
    io.run();
    CHECK(said == std::vector<std::string>{"locked", "not locked", "unlocked"});
    CHECK(comes_free(locks, "orders"));
}

TEMPLATE_TEST_CASE("a future tells of the lock", "", HOLDFAST_LOCKS)
{
    TestType locks;
    holdfast::mutex m{*locks.one, "orders"};
    holdfast::mutex second{*locks.other, "orders"};
    async_lock(m, asio::use_future).get();
    CHECK_FALSE(async_try_lock_for(second, 1ms, asio::use_future).get());
    auto waits = async_lock_guard(second, asio::use_future);
    async_unlock(m, asio::use_future).get();
    auto hold = waits.get();
    CHECK(hold.still_held());
    CHECK(hold.fencing_token() > 0);
    async_unlock(hold, asio::use_future).get();
    CHECK_FALSE(hold);
    CHECK(code_of([&](auto f) { async_unlock(hold, f); }) == holdfast::errc::not_owner);

    async_lock(m, asio::use_future).get();
    holdfast::async_guard old{m, std::adopt_lock};
    m.unlock();
    m.lock();
    CHECK(code_of([&](auto f) { async_unlock(old, f); }) ==
          holdfast::errc::not_owner);  // its hold is over, and the present one is another's
    CHECK(m.lease().still_held());
    m.unlock();
    CHECK(comes_free(locks, "orders"));
}

namespace {

/// As REQUIRE, which is for one thread.
void must(bool good)
{
    if (!good) throw std::logic_error{"a coroutine saw what must not be"};
}

asio::awaitable<void> lock_and_unlock(holdfast::mutex& m, int& sections)
{
    co_await async_lock(m, use_awaitable);
    ++sections;
    co_await async_unlock(m, use_awaitable);
    must(co_await async_try_lock_for(m, 1min, use_awaitable));
    ++sections;
    co_await async_unlock(m, use_awaitable);
    {
        auto const hold = co_await async_lock_guard(m, 1min, use_awaitable);
        must(hold.owns_lock());
        ++sections;
    }
    auto hold = co_await async_lock_guard(m, use_awaitable);
    ++sections;
    co_await async_unlock(hold, use_awaitable);
    auto const [ec] = co_await async_unlock(m, asio::experimental::as_tuple(use_awaitable));
    must(ec == holdfast::errc::not_owner);
    auto later = async_lock(m, asio::experimental::deferred);
    co_await std::move(later)(use_awaitable);
    ++sections;
    async_guard const adopted{m, std::adopt_lock};
}

}  // namespace

TEMPLATE_TEST_CASE("coroutines take turns, on one thread and on four", "", HOLDFAST_LOCKS)
{
    TestType locks;
    auto const threads = GENERATE(std::size_t{1}, std::size_t{4});
    constexpr int count = 20;
    int sections = 0;  // guarded by the lock
    std::atomic<int> failed{0};
    std::vector<std::unique_ptr<holdfast::mutex>> mutexes;
    for (int i = 0; i < count; ++i)
        mutexes.push_back(std::make_unique<holdfast::mutex>(i % 2 == 0 ? *locks.one : *locks.other, "orders"));
    asio::thread_pool pool{threads};
    for (auto& m : mutexes)
        asio::co_spawn(pool, lock_and_unlock(*m, sections), [&](std::exception_ptr e) {
            if (e) ++failed;
        });
    pool.join();
    CHECK(failed == 0);
    CHECK(sections == 5 * count);
    CHECK(comes_free(locks, "orders"));
}

TEMPLATE_TEST_CASE("a guard that is dropped gives the lock back, and may outlive its mutex", "", HOLDFAST_LOCKS)
{
    TestType locks;
    async_guard outlives;
    {
        holdfast::mutex m{*locks.one, "orders"};
        {
            auto const dropped = async_lock_guard(m, asio::use_future).get();
        }
        outlives = async_lock_guard(m, asio::use_future).get();
        CHECK(outlives.still_held());
    }
    CHECK_FALSE(outlives.still_held());
    {
        holdfast::mutex other{*locks.one, "orders"};
        other.lock();
        outlives = {};
        CHECK(other.lease().still_held());
    }
    CHECK(comes_free(locks, "orders"));
}

TEST_CASE("a guard gives back just the hold that it has")
{
    holdfast::test::memory_locks locks;
    holdfast::mutex m{*locks.one, "orders"};
    auto old = async_lock_guard(m, asio::use_future).get();
    m.unlock();
    m.lock();
    old.give_back();
    CHECK(m.lease().still_held());
    auto present = async_guard{m, std::adopt_lock};
    present.release();
    CHECK_FALSE(present);
    CHECK(m.lease().still_held());
}
