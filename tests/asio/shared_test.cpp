// SPDX-License-Identifier: MIT
//
// Both sides of a read-write lock by callbacks, futures and coroutines: what is promised of a mutex holds for each.
#include "stores.hpp"
#include "support/catch.hpp"

#include <holdfast/asio.hpp>
#include <holdfast/shared_mutex.hpp>

#include <asio/awaitable.hpp>
#include <asio/bind_cancellation_slot.hpp>
#include <asio/bind_executor.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/error.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <asio/experimental/deferred.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <asio/thread_pool.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/use_future.hpp>

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using asio::use_awaitable;
using asio::use_future;
using holdfast::async_lock;
using holdfast::async_lock_guard;
using holdfast::async_lock_shared;
using holdfast::async_lock_shared_guard;
using holdfast::async_try_lock_for;
using holdfast::async_try_lock_shared_for;
using holdfast::async_unlock;
using holdfast::async_unlock_shared;
using holdfast::shared_mutex;
using holdfast::test::code_of;
using holdfast::test::eventually;

namespace {

/// Returns: whether no hold of either side is left.
template <class Locks>
[[nodiscard]] bool comes_free_of_all(Locks& locks)
{
    shared_mutex probe{*locks.other, "prices"};
    return probe.try_lock_for(1min);
}

}  // namespace

TEMPLATE_TEST_CASE("readers are together and a writer is alone, asynchronously", "", HOLDFAST_LOCKS)
{
    TestType locks;
    {
        shared_mutex m{*locks.one, "prices"};
        shared_mutex other{*locks.other, "prices"};
        async_lock_shared(m, use_future).get();
        async_lock_shared(m, use_future).get();
        CHECK(async_try_lock_shared_for(other, 1min, use_future).get());
        CHECK(m.lease_shared().still_held());
        CHECK_FALSE(async_try_lock_for(other, 1ms, use_future).get());
        async_unlock_shared(other, use_future).get();
        async_unlock_shared(m, use_future).get();
        CHECK(m.lease_shared().still_held());
        m.unlock_shared();  // one that was taken asynchronously
        CHECK_FALSE(m.lease_shared().still_held());
        CHECK(code_of([&](auto f) { async_unlock_shared(m, f); }) == holdfast::errc::not_owner);

        async_lock(other, use_future).get();
        CHECK(other.lease().still_held());
        CHECK_FALSE(async_try_lock_shared_for(m, 1ms, use_future).get());
        auto waits = async_lock_shared(m, use_future);
        async_unlock(other, use_future).get();
        waits.get();
        CHECK(m.lease_shared().still_held());
        CHECK(code_of([&](auto f) { async_unlock(m, f); }) == holdfast::errc::not_owner);
        m.lock_shared();
        m.unlock_shared();  // this thread's own
        CHECK(m.lease_shared().still_held());
    }
    CHECK(comes_free_of_all(locks));
}

TEMPLATE_TEST_CASE("a guard has a shared hold of its own, which it gives back or leaves", "", HOLDFAST_LOCKS)
{
    TestType locks;
    {
        shared_mutex m{*locks.one, "prices"};
        {
            auto const dropped = async_lock_shared_guard(m, use_future).get();
            CHECK(dropped.still_held());
            CHECK(dropped.fencing_token() > 0);
            CHECK_FALSE(m.lease_shared().still_held());  // it is not one of those that `unlock_shared` gives back
        }
        auto first = async_lock_shared_guard(m, use_future).get();
        auto second = async_lock_shared_guard(m, 1min, use_future).get();
        CHECK(second.owns_lock());
        async_unlock(first, use_future).get();
        CHECK_FALSE(first);
        CHECK(code_of([&](auto f) { async_unlock(first, f); }) == holdfast::errc::not_owner);
        CHECK(second.still_held());
        second.release();
        CHECK(m.lease_shared().still_held());
        m.unlock_shared();
        auto writing = async_lock_guard(m, use_future).get();
        CHECK(writing.still_held());
        CHECK_FALSE(async_lock_shared_guard(m, 1ms, use_future).get().owns_lock());
        async_unlock(writing, use_future).get();
        auto outlives = async_lock_shared_guard(m, use_future).get();
        second = std::move(outlives);
        first = std::move(second);
        CHECK(first.still_held());
        m.lock_shared();
    }
    CHECK(comes_free_of_all(locks));
}

TEMPLATE_TEST_CASE("a guard of a reader outlives the lock, and then owns nothing", "", HOLDFAST_LOCKS)
{
    TestType locks;
    std::optional<shared_mutex> m{std::in_place, *locks.one, "prices"};
    auto outlives = async_lock_shared_guard(*m, use_future).get();
    m.reset();
    CHECK_FALSE(outlives.still_held());
    locks.one.reset();
    CHECK(comes_free_of_all(locks));
    outlives = {};
}

namespace {

asio::awaitable<void> read_and_write(shared_mutex& m, std::atomic<int>& readers, std::atomic<int>& wrong)
{
    for (int i = 0; i < 2; ++i) {
        co_await async_lock_shared(m, use_awaitable);
        ++readers;
        --readers;
        co_await async_unlock_shared(m, use_awaitable);
        {
            auto const reading = co_await async_lock_shared_guard(m, 5min, use_awaitable);
            if (!reading.still_held()) ++wrong;
            ++readers;
            --readers;
        }
        auto writing = co_await async_lock_guard(m, use_awaitable);
        if (readers.exchange(1000) != 0) ++wrong;
        readers -= 1000;
        co_await async_unlock(writing, use_awaitable);
    }
}

}  // namespace

TEMPLATE_TEST_CASE("coroutines read and write, on one thread and on four", "", HOLDFAST_LOCKS)
{
    TestType locks;
    auto const threads = GENERATE(std::size_t{1}, std::size_t{4});
    std::atomic<int> readers{0};
    std::atomic<int> wrong{0};
    {
        shared_mutex one{*locks.one, "prices"};
        shared_mutex other{*locks.other, "prices"};
        asio::thread_pool pool{threads};
        for (int i = 0; i < 6; ++i)
            asio::co_spawn(pool, read_and_write(i % 2 == 0 ? one : other, readers, wrong), [&](std::exception_ptr e) {
                if (e) ++wrong;
            });
        pool.join();
        CHECK_FALSE(one.lease_shared().still_held());
    }
    CHECK(wrong == 0);
    CHECK(readers == 0);
    CHECK(comes_free_of_all(locks));
}

TEMPLATE_TEST_CASE("a reader that waits behind a writer, and a writer behind a reader, are cancelled", "",
                   HOLDFAST_LOCKS)
{
    TestType locks;
    shared_mutex holder{*locks.other, "prices"};
    shared_mutex m{*locks.one, "prices"};
    bool const reads = GENERATE(true, false);
    reads ? holder.lock() : holder.lock_shared();
    asio::io_context io;
    asio::cancellation_signal by;
    std::optional<std::error_code> said;
    auto const handler = [&] {
        return asio::bind_cancellation_slot(by.slot(), asio::bind_executor(io, [&](std::error_code ec) { said = ec; }));
    };
    reads ? async_lock_shared(m, handler()) : async_lock(m, handler());
    io.run_for(GENERATE(0ms, 20ms));
    CHECK_FALSE(said);
    by.emit(asio::cancellation_type::total);
    io.run();
    CHECK(said == asio::error::operation_aborted);
    reads ? holder.unlock() : holder.unlock_shared();
    m.lock();
    m.unlock();
    CHECK(comes_free_of_all(locks));
}

TEMPLATE_TEST_CASE("a reader that is cancelled as it is granted has a hold, or has none, as it says", "",
                   HOLDFAST_LOCKS)
{
    TestType locks;
    {
        shared_mutex m{*locks.one, "prices"};
        for (int i = 0; i < 50; ++i) {
            asio::io_context io;
            asio::cancellation_signal by;
            std::optional<std::error_code> said;
            async_lock_shared(m, asio::bind_cancellation_slot(
                                     by.slot(), asio::bind_executor(io, [&](std::error_code ec) { said = ec; })));
            if (i % 2 == 0) io.run_for(std::chrono::microseconds{10 * i});
            by.emit(asio::cancellation_type::total);
            io.run();
            REQUIRE(said);
            CHECK(m.lease_shared().still_held() == !*said);
            if (*said) CHECK(*said == asio::error::operation_aborted);
            m.unlock_shared();
        }
    }
    CHECK(comes_free_of_all(locks));
}

TEMPLATE_TEST_CASE("a timer that is faster than a reader leaves no hold that is not known", "", HOLDFAST_LOCKS)
{
    using namespace asio::experimental::awaitable_operators;
    TestType locks;
    shared_mutex m{*locks.one, "prices"};
    asio::io_context io;
    std::exception_ptr thrown;
    auto const race = [&]() -> asio::awaitable<void> {
        asio::steady_timer timer{io, 0ms};
        static_cast<void>(co_await (async_lock_shared_guard(m, use_awaitable) || timer.async_wait(use_awaitable)));
    };
    for (int i = 0; i < 30; ++i) {
        io.restart();
        asio::co_spawn(io, race(), [&](std::exception_ptr e) { thrown = e; });
        io.run();
        CHECK_FALSE(thrown);
    }
    CHECK(comes_free_of_all(locks));
}

TEMPLATE_TEST_CASE("a read-write lock is destroyed while calls are pending: they are cancelled", "", HOLDFAST_LOCKS)
{
    TestType locks;
    shared_mutex holder{GENERATE(true, false) ? *locks.one : *locks.other, "prices"};
    holder.lock();
    std::optional<shared_mutex> m{std::in_place, *locks.one, "prices"};
    asio::io_context io;
    std::optional<std::error_code> reader;
    std::optional<std::error_code> guard;
    std::optional<std::error_code> writer;
    async_lock_shared(*m, asio::bind_executor(io, [&](std::error_code ec) { reader = ec; }));
    async_lock_shared_guard(*m, asio::bind_executor(io, [&](std::error_code ec, holdfast::async_guard hold) {
        guard = ec;
        CHECK_FALSE(hold);
    }));
    async_lock(*m, asio::bind_executor(io, [&](std::error_code ec) { writer = ec; }));
    std::this_thread::sleep_for(GENERATE(0ms, 10ms));
    m.reset();
    io.run();
    CHECK(reader == asio::error::operation_aborted);
    CHECK(guard == asio::error::operation_aborted);
    CHECK(writer == asio::error::operation_aborted);
    holder.unlock();
    CHECK(comes_free_of_all(locks));
}

TEMPLATE_TEST_CASE("a read-write lock is destroyed when a reader was granted and not told", "", HOLDFAST_LOCKS)
{
    TestType locks;
    std::optional<shared_mutex> m{std::in_place, *locks.one, "prices"};
    asio::io_context io;
    std::optional<std::error_code> said;
    async_lock_shared(*m, asio::bind_executor(io, [&](std::error_code ec) { said = ec; }));
    shared_mutex probe{*locks.other, "prices"};
    REQUIRE(eventually([&] { return !probe.try_lock() || (probe.unlock(), false); }));
    m.reset();
    io.run();
    CHECK(said == asio::error::operation_aborted);
    CHECK(comes_free_of_all(locks));
}

TEMPLATE_TEST_CASE("a context is destroyed with readers that wait, or were granted and not told", "", HOLDFAST_LOCKS)
{
    TestType locks;
    shared_mutex holder{*locks.other, "prices"};
    shared_mutex m{*locks.one, "prices"};
    bool const waits = GENERATE(true, false);
    if (waits) holder.lock();
    auto alive = std::make_shared<int>(0);
    std::weak_ptr<int> const seen = alive;
    {
        asio::io_context io;
        auto const never = [&](std::shared_ptr<int> own) {
            return asio::bind_executor(
                io, [own = std::move(own)](auto&&...) { FAIL("a handler of a context that was not run"); });
        };
        async_lock_shared(m, never(alive));
        async_try_lock_shared_for(m, 1h, never(alive));
        async_lock_shared_guard(m, never(std::move(alive)));
        std::this_thread::sleep_for(GENERATE(0ms, 20ms));
    }
    CHECK(seen.expired());
    if (waits) holder.unlock();
    CHECK(comes_free_of_all(locks));
    CHECK_FALSE(m.lease_shared().still_held());
}

TEMPLATE_TEST_CASE("a call that is begun when its read-write lock and the client are gone is cancelled", "",
                   HOLDFAST_LOCKS)
{
    TestType locks;
    std::optional<shared_mutex> m{std::in_place, *locks.one, "prices"};
    m->lock_shared();
    auto lock = async_lock_shared(*m, asio::experimental::deferred);
    auto unlock = async_unlock_shared(*m, asio::experimental::deferred);
    m.reset();
    locks.one.reset();
    CHECK(code_of(std::move(lock)) == asio::error::operation_aborted);
    CHECK(code_of(std::move(unlock)) == holdfast::errc::not_owner);
    CHECK(comes_free_of_all(locks));
}

TEST_CASE("a guard adopts a hold of a read-write lock, exclusive or shared")
{
    holdfast::test::memory_locks locks;
    holdfast::shared_mutex prices{*locks.one, "prices"};
    holdfast::shared_mutex rival{*locks.other, "prices"};
    std::error_code ec;
    prices.lock();
    {
        holdfast::async_guard const writing{prices, std::adopt_lock};
        CHECK(writing.still_held());
        CHECK(writing.fencing_token() == prices.lease().fencing_token());
        CHECK_FALSE(rival.try_lock_shared());
    }
    CHECK(rival.try_lock_for(1min));
    rival.unlock();
    prices.lock_shared();
    {
        auto reading = holdfast::async_guard::adopt_shared(prices);
        CHECK(reading.still_held());
        CHECK_FALSE(rival.try_lock());
        prices.unlock_shared(ec);
        CHECK(ec == holdfast::errc::not_owner);
        reading.release();  // of no thread now
        CHECK_FALSE(rival.try_lock());
        auto const again = holdfast::async_guard::adopt_shared(prices);
        CHECK(again.still_held());
    }
    CHECK(rival.try_lock_for(1min));
}
