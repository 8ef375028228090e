// SPDX-License-Identifier: MIT
//
// Boost.Asio: the same surface with Boost's error codes, in which the library's conditions are found again.
#include "stores.hpp"
#include "support/catch.hpp"

#include <holdfast/adapters/multi_mutex.hpp>
#include <holdfast/boost_asio.hpp>
#include <holdfast/semaphore.hpp>
#include <holdfast/shared_mutex.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/error_code.hpp>

#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <string>

using namespace std::chrono_literals;
namespace net = boost::asio;
using boost::system::error_code;
using holdfast::async_lock;
using holdfast::async_lock_guard;
using holdfast::async_try_lock_for;
using holdfast::async_unlock;
using holdfast::test::code_of;
using holdfast::test::comes_free;

TEMPLATE_TEST_CASE("coroutines of Boost.Asio lock", "[boost]", HOLDFAST_LOCKS)
{
    TestType locks;
    holdfast::mutex m{*locks.one, "orders"};
    net::io_context io;
    auto const all = [&]() -> net::awaitable<void> {
        co_await async_lock(m, net::use_awaitable);
        CHECK_FALSE(co_await async_try_lock_for(m, 1ms, net::use_awaitable));
        co_await async_unlock(m, net::use_awaitable);
        auto hold = co_await async_lock_guard(m, 1min, net::use_awaitable);
        CHECK(hold.still_held());
        co_await async_unlock(hold, net::use_awaitable);
    };
    std::exception_ptr thrown;
    net::co_spawn(io, all(), [&](std::exception_ptr e) { thrown = e; });
    io.run();
    CHECK_FALSE(thrown);
    CHECK(comes_free(locks, "orders"));
}

TEST_CASE("a code of Boost has the library's condition and words", "[boost]")
{
    holdfast::redis::client nowhere{"redis://127.0.0.1:1"};
    holdfast::mutex m{nowhere, "orders", {.unavailable_after = 1ms}};
    net::io_context io;
    std::optional<error_code> said;
    async_lock(m, net::bind_executor(io, [&](error_code ec) { said = ec; }));
    io.run();
    REQUIRE(said);
    CHECK(*said == holdfast::errc::unavailable);
    CHECK(*said != holdfast::errc::misconfigured);
    CHECK(std::error_code{*said}.message() == said->message());
    auto const nothing_held = code_of<error_code>([&](auto f) { async_unlock(m, f); });
    CHECK(nothing_held == holdfast::errc::not_owner);
    CHECK(std::error_code{nothing_held}.category() == holdfast::error_category());
    CHECK(nothing_held.message() == make_error_code(holdfast::errc::not_owner).message());
}

TEST_CASE("a cancellation is what Boost.Asio says of one", "[boost]")
{
    holdfast::memory::store store;
    holdfast::mutex holder{store, "orders"};
    holdfast::mutex m{store, "orders"};
    holder.lock();
    net::io_context io;
    net::cancellation_signal by;
    std::optional<error_code> said;
    async_lock(m, net::bind_cancellation_slot(by.slot(), net::bind_executor(io, [&](error_code ec) { said = ec; })));
    by.emit(net::cancellation_type::terminal);
    io.run();
    REQUIRE(said);
    CHECK(*said == net::error::operation_aborted);
    CHECK(*said == boost::system::errc::operation_canceled);
    CHECK(*said == std::errc::operation_canceled);
}

TEMPLATE_TEST_CASE("a context of Boost.Asio is destroyed with calls that are pending or not told", "[boost]",
                   HOLDFAST_LOCKS)
{
    TestType locks;
    holdfast::mutex m{*locks.one, "orders"};
    holdfast::mutex waits{*locks.one, "orders"};
    auto alive = std::make_shared<int>(0);
    std::weak_ptr<int> const seen = alive;
    {
        net::io_context io;
        auto const never = [&](std::shared_ptr<int> own) {
            return net::bind_executor(io, [own](error_code) { FAIL("a handler of a context that was not run"); });
        };
        async_lock(m, never(alive));
        async_lock(waits, never(std::move(alive)));
        REQUIRE(holdfast::test::eventually([&] { return m.lease().still_held() || waits.lease().still_held(); }));
    }
    CHECK(seen.expired());
    CHECK(comes_free(locks, "orders"));
}

TEMPLATE_TEST_CASE("coroutines of Boost.Asio read and write, take permits and several locks", "[boost]", HOLDFAST_LOCKS)
{
    TestType locks;
    {
        holdfast::shared_mutex prices{*locks.one, "prices"};
        holdfast::semaphore jobs{*locks.one, "jobs", 2};
        holdfast::mutex a{*locks.one, "a"};
        holdfast::mutex b{*locks.one, "b"};
        holdfast::multi_mutex both{a, b};
        net::io_context io;
        auto const all = [&]() -> net::awaitable<void> {
            co_await holdfast::async_lock_shared(prices, net::use_awaitable);
            auto reading = co_await holdfast::async_lock_shared_guard(prices, 1min, net::use_awaitable);
            CHECK(reading.still_held());
            CHECK_FALSE(co_await async_try_lock_for(prices, 1ms, net::use_awaitable));
            co_await async_unlock(reading, net::use_awaitable);
            co_await holdfast::async_unlock_shared(prices, net::use_awaitable);
            co_await async_lock(prices, net::use_awaitable);
            CHECK_FALSE(co_await holdfast::async_try_lock_shared_for(prices, 1ms, net::use_awaitable));
            co_await async_unlock(prices, net::use_awaitable);
            co_await holdfast::async_acquire(jobs, net::use_awaitable);
            auto permit = co_await holdfast::async_acquire_guard(jobs, net::use_awaitable);
            CHECK_FALSE(co_await holdfast::async_try_acquire_for(jobs, 1ms, net::use_awaitable));
            co_await async_unlock(permit, net::use_awaitable);
            co_await holdfast::async_release(jobs, net::use_awaitable);
            auto hold = co_await async_lock_guard(both, net::use_awaitable);
            CHECK(hold.still_held());
            co_await async_unlock(hold, net::use_awaitable);
        };
        std::exception_ptr thrown;
        net::co_spawn(io, all(), [&](std::exception_ptr e) { thrown = e; });
        io.run();
        CHECK_FALSE(thrown);
    }
    CHECK(comes_free(locks, "a"));
    CHECK(comes_free(locks, "b"));
}
