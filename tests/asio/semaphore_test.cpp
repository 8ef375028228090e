// SPDX-License-Identifier: MIT
//
// Permits by callbacks, futures and coroutines.
#include "stores.hpp"
#include "support/async_outcome.hpp"
#include "support/catch.hpp"

#include <holdfast/asio.hpp>
#include <holdfast/semaphore.hpp>

#include <asio/awaitable.hpp>
#include <asio/bind_cancellation_slot.hpp>
#include <asio/bind_executor.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/co_spawn.hpp>
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
#include <optional>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>

using namespace std::chrono_literals;
using asio::use_awaitable;
using asio::use_future;
using holdfast::async_acquire;
using holdfast::async_acquire_guard;
using holdfast::async_release;
using holdfast::async_try_acquire_for;
using holdfast::async_unlock;
using holdfast::semaphore;
using holdfast::test::async_outcome;
using holdfast::test::code_of;
using holdfast::test::eventually;

namespace {

/// Returns: whether both permits come free within a while.
template <class Locks>
[[nodiscard]] bool both_come_free(Locks& locks)
{
    semaphore probe{*locks.other, "jobs", 2};
    return probe.try_acquire_for(1min) && probe.try_acquire_for(1min);
}

}  // namespace

TEMPLATE_TEST_CASE("permits are taken and given back asynchronously, and no more than there are", "", HOLDFAST_LOCKS)
{
    TestType locks;
    {
        semaphore jobs{*locks.one, "jobs", 2};
        semaphore others{*locks.other, "jobs", 2};
        async_acquire(jobs, use_future).get();
        CHECK(async_try_acquire_for(others, 1min, use_future).get());
        CHECK_FALSE(async_try_acquire_for(jobs, 1ms, use_future).get());
        CHECK_FALSE(others.try_acquire());
        auto waits = async_acquire(jobs, use_future);
        CHECK(waits.wait_for(20ms) == std::future_status::timeout);
        async_release(others, use_future).get();
        waits.get();
        CHECK(code_of([&](auto f) { async_release(others, f); }) == holdfast::errc::not_owner);
        jobs.release();
        async_release(jobs, use_future).get();
        CHECK(code_of([&](auto f) { async_release(jobs, f); }) == holdfast::errc::not_owner);
        jobs.acquire();
        async_release(jobs, use_future).get();
    }
    CHECK(both_come_free(locks));
}

TEMPLATE_TEST_CASE("a guard has a permit of its own, which it gives back or leaves", "", HOLDFAST_LOCKS)
{
    TestType locks;
    {
        semaphore jobs{*locks.one, "jobs", 2};
        {
            auto const dropped = async_acquire_guard(jobs, use_future).get();
            CHECK(dropped.still_held());
            CHECK(dropped.fencing_token() > 0);
            std::error_code ec;
            jobs.release(ec);
            CHECK(ec == holdfast::errc::not_owner);
        }
        auto first = async_acquire_guard(jobs, use_future).get();
        auto second = async_acquire_guard(jobs, 1min, use_future).get();
        CHECK(second.owns_lock());
        CHECK_FALSE(async_acquire_guard(jobs, 1ms, use_future).get().owns_lock());
        async_unlock(first, use_future).get();
        CHECK_FALSE(first);
        second.release();
        std::error_code ec;
        jobs.release(ec);
        CHECK_FALSE(ec);
        first = async_acquire_guard(jobs, use_future).get();
        CHECK(first.still_held());
    }
    CHECK(both_come_free(locks));
}

TEMPLATE_TEST_CASE("several permits are taken together, or none", "", HOLDFAST_LOCKS)
{
    TestType locks;
    {
        semaphore jobs{*locks.one, "jobs", 2};
        semaphore others{*locks.other, "jobs", 2};
        async_acquire(jobs, 2, use_future).get();
        CHECK_FALSE(others.try_acquire());
        async_release(jobs, 2, use_future).get();
        CHECK(code_of([&](auto f) { async_release(jobs, 2, f); }) == holdfast::errc::not_owner);
        CHECK(code_of([&](auto f) { async_acquire(jobs, 3, f); }) == holdfast::errc::misconfigured);
        others.acquire();
        CHECK_FALSE(async_try_acquire_for(jobs, 2, 20ms, use_future).get());
        CHECK_FALSE(async_acquire_guard(jobs, 2, 20ms, use_future).get().owns_lock());
        auto waits = async_acquire_guard(jobs, 2, use_future);
        CHECK(waits.wait_for(20ms) == std::future_status::timeout);
        others.release();
        auto both = waits.get();
        CHECK(both.still_held());
        CHECK(both.fencing_token() == 0);
        CHECK_FALSE(others.try_acquire());
        async_unlock(both, use_future).get();
        CHECK_FALSE(both);
        {
            auto const dropped = async_acquire_guard(others, 2, use_future).get();
            CHECK(dropped.owns_lock());
        }
        async_acquire_guard(jobs, 2, use_future).get().release();
        CHECK(jobs.permits_in_use() == 2);
        async_release(jobs, 2, use_future).get();
    }
    CHECK(both_come_free(locks));
}

TEMPLATE_TEST_CASE("coroutines take permits, on one thread and on four", "", HOLDFAST_LOCKS)
{
    TestType locks;
    auto const threads = GENERATE(std::size_t{1}, std::size_t{4});
    std::atomic<int> working{0};
    std::atomic<int> sections{0};
    std::atomic<int> wrong{0};
    {
        semaphore one{*locks.one, "jobs", 2};
        semaphore other{*locks.other, "jobs", 2};
        asio::thread_pool pool{threads};
        auto const work = [&](semaphore& jobs) -> asio::awaitable<void> {
            for (int i = 0; i < 3; ++i) {
                co_await async_acquire(jobs, use_awaitable);
                if (++working > 2) ++wrong;
                ++sections;
                --working;
                co_await async_release(jobs, use_awaitable);
                auto permit = co_await async_acquire_guard(jobs, use_awaitable);
                if (++working > 2) ++wrong;
                ++sections;
                --working;
                co_await async_unlock(permit, use_awaitable);
            }
        };
        for (int i = 0; i < 6; ++i)
            asio::co_spawn(pool, work(i % 2 == 0 ? one : other), [&](std::exception_ptr e) {
                if (e) ++wrong;
            });
        pool.join();
    }
    CHECK(wrong == 0);
    CHECK(sections == 36);
    CHECK(both_come_free(locks));
}

TEMPLATE_TEST_CASE("a wait for a permit is cancelled, while it waits and as it is granted", "", HOLDFAST_LOCKS)
{
    TestType locks;
    {
        semaphore holder{*locks.other, "jobs", 1};
        semaphore jobs{*locks.one, "jobs", 1};
        bool const held = GENERATE(true, false);
        if (held) holder.acquire();
        for (int i = 0; i < 20; ++i) {
            asio::io_context io;
            asio::cancellation_signal by;
            std::optional<std::error_code> said;
            async_acquire(jobs, asio::bind_cancellation_slot(
                                    by.slot(), asio::bind_executor(io, [&](std::error_code ec) { said = ec; })));
            if (i % 2 == 0) io.run_for(std::chrono::microseconds{100 * i});
            by.emit(asio::cancellation_type::total);
            io.run();
            REQUIRE(said);
            std::error_code ec;
            jobs.release(ec);
            CHECK(!ec == !*said);
            if (*said) CHECK(*said == asio::error::operation_aborted);
            if (held) CHECK(*said);
        }
    }
    semaphore probe{*locks.other, "jobs", 1};
    CHECK(probe.try_acquire_for(1min));
}

TEMPLATE_TEST_CASE("a timer that is faster than a permit leaves none that is not known", "", HOLDFAST_LOCKS)
{
    using namespace asio::experimental::awaitable_operators;
    TestType locks;
    semaphore jobs{*locks.one, "jobs", 2};
    asio::io_context io;
    std::exception_ptr thrown;
    auto const race = [&]() -> asio::awaitable<void> {
        asio::steady_timer timer{io, 0ms};
        static_cast<void>(co_await (async_acquire_guard(jobs, use_awaitable) || timer.async_wait(use_awaitable)));
    };
    for (int i = 0; i < 30; ++i) {
        io.restart();
        asio::co_spawn(io, race(), [&](std::exception_ptr e) { thrown = e; });
        io.run();
        CHECK_FALSE(thrown);
    }
    CHECK(both_come_free(locks));
}

TEMPLATE_TEST_CASE("a semaphore, a context or the client is destroyed while permits are waited for", "", HOLDFAST_LOCKS)
{
    TestType locks;
    semaphore holder{GENERATE(true, false) ? *locks.one : *locks.other, "jobs", 2};
    holder.acquire();
    bool const granted = GENERATE(true, false);
    if (!granted) holder.acquire();
    std::optional<semaphore> jobs{std::in_place, *locks.one, "jobs", 2};
    auto later = async_acquire(*jobs, asio::experimental::deferred);
    auto release = async_release(*jobs, asio::experimental::deferred);
    auto alive = std::make_shared<int>(0);
    std::weak_ptr<int> const seen = alive;
    {
        asio::io_context dies;
        async_acquire(*jobs, asio::bind_executor(dies, [own = std::move(alive)](std::error_code) {
            FAIL("a handler of a context that was not run");
        }));
        if (granted) {
            semaphore probe{*locks.other, "jobs", 2};
            REQUIRE(eventually([&] { return !probe.try_acquire() || (probe.release(), false); }));
        }
    }
    CHECK(seen.expired());
    asio::io_context io;
    std::optional<std::error_code> said;
    if (!granted) async_acquire(*jobs, asio::bind_executor(io, [&](std::error_code ec) { said = ec; }));
    std::this_thread::sleep_for(GENERATE(0ms, 10ms));
    jobs.reset();
    io.run();
    if (!granted) CHECK(said == asio::error::operation_aborted);
    CHECK(code_of(std::move(later)) == asio::error::operation_aborted);
    CHECK(code_of(std::move(release)) == holdfast::errc::not_owner);
    holder.release();
    if (!granted) holder.release();
    CHECK(both_come_free(locks));
}

TEMPLATE_TEST_CASE("a function is told of a permit, of a stop, and that the time has passed", "", HOLDFAST_LOCKS)
{
    TestType locks;
    {
        semaphore jobs{*locks.one, "jobs", 2};
        for (int i = 0; i < 2; ++i) {
            async_outcome taken;
            jobs.async_acquire(taken.hears());
            REQUIRE(taken.comes());
            CHECK_FALSE(taken.code());
            CHECK(taken.by() != std::this_thread::get_id());
        }
        async_outcome late;
        jobs.async_try_acquire_for(1ms, late.hears());
        REQUIRE(late.comes());
        CHECK_FALSE(late.code());
        CHECK_FALSE(late.held());
        std::stop_source stop;
        async_outcome stopped;
        jobs.async_acquire(stopped.hears(), stop.get_token());
        std::this_thread::sleep_for(10ms);
        CHECK_FALSE(stopped.told());
        stop.request_stop();
        REQUIRE(stopped.comes());
        CHECK(stopped.code() == std::errc::operation_canceled);
        async_outcome waits;
        jobs.async_acquire(waits.hears());
        async_outcome released;
        jobs.async_release(released.hears());
        REQUIRE(released.comes());
        CHECK_FALSE(released.code());
        REQUIRE(waits.comes());
        CHECK_FALSE(waits.code());
        jobs.release();
        jobs.release();
        async_outcome none;
        jobs.async_release(none.hears());
        REQUIRE(none.comes());
        CHECK(none.code() == holdfast::errc::not_owner);
        for (auto* const one : {&late, &stopped, &waits, &released, &none}) CHECK(one->calls() == 1);
    }
    CHECK(both_come_free(locks));
}
