// SPDX-License-Identifier: MIT
//
// A call is cancelled through its cancellation slot, at every stage and by every type of cancellation.
#include "stores.hpp"
#include "support/catch.hpp"

#include <holdfast/asio.hpp>

#include <asio/bind_cancellation_slot.hpp>
#include <asio/bind_executor.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/error.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/use_future.hpp>

#include <chrono>
#include <optional>
#include <system_error>
#include <variant>

using namespace std::chrono_literals;
using asio::use_awaitable;
using holdfast::async_lock;
using holdfast::async_lock_guard;
using holdfast::async_unlock;
using holdfast::test::comes_free;

namespace {

/// A handler on `io` that keeps its result in `to`, and can be cancelled by `by`.
auto cancellable(asio::io_context& io, asio::cancellation_signal& by, std::optional<std::error_code>& to)
{
    return asio::bind_cancellation_slot(by.slot(), asio::bind_executor(io, [&to](std::error_code ec) { to = ec; }));
}

auto every_type()
{
    return GENERATE(asio::cancellation_type::terminal, asio::cancellation_type::partial, asio::cancellation_type::total,
                    asio::cancellation_type::all);
}

}  // namespace

TEMPLATE_TEST_CASE("a call that waits behind its own process is cancelled", "", HOLDFAST_LOCKS)
{
    TestType locks;
    holdfast::mutex holder{*locks.one, "orders"};
    holdfast::mutex m{*locks.one, "orders"};
    holder.lock();
    asio::io_context io;
    asio::cancellation_signal by;
    std::optional<std::error_code> said;
    async_lock(m, cancellable(io, by, said));
    CHECK(io.run_for(20ms) == 0);
    by.emit(every_type());
    io.run();
    REQUIRE(said);
    CHECK(*said == asio::error::operation_aborted);
    CHECK_FALSE(m.lease().still_held());
    CHECK(holder.lease().still_held());
    holder.unlock();
    CHECK(comes_free(locks, "orders"));
}

TEMPLATE_TEST_CASE("a call that waits behind another client is cancelled", "", HOLDFAST_LOCKS)
{
    TestType locks;
    holdfast::mutex holder{*locks.other, "orders"};
    holdfast::mutex m{*locks.one, "orders"};
    holder.lock();
    asio::io_context io;
    asio::cancellation_signal by;
    std::optional<std::error_code> said;
    async_lock(m, cancellable(io, by, said));
    io.run_for(GENERATE(0ms, 1ms, 20ms));
    by.emit(every_type());
    io.run();
    REQUIRE(said);
    CHECK(*said == asio::error::operation_aborted);
    holder.unlock();
    CHECK(comes_free(locks, "orders"));
}

TEMPLATE_TEST_CASE("a call that is cancelled as it is begun has the lock, or has not, as it says", "", HOLDFAST_LOCKS)
{
    TestType locks;
    holdfast::mutex m{*locks.one, "orders"};
    for (int i = 0; i < 50; ++i) {
        asio::io_context io;
        asio::cancellation_signal by;
        std::optional<std::error_code> said;
        async_lock(m, cancellable(io, by, said));
        if (i % 2 == 0) io.run_for(std::chrono::microseconds{10 * i});
        by.emit(asio::cancellation_type::total);
        io.run();
        REQUIRE(said);
        CHECK(m.lease().still_held() == !*said);
        if (*said) CHECK(*said == asio::error::operation_aborted);
        m.unlock();
    }
    CHECK(comes_free(locks, "orders"));
}

TEMPLATE_TEST_CASE("a cancellation after the end changes nothing", "", HOLDFAST_LOCKS)
{
    TestType locks;
    holdfast::mutex m{*locks.one, "orders"};
    asio::io_context io;
    asio::cancellation_signal by;
    std::optional<std::error_code> said;
    async_lock(m, cancellable(io, by, said));
    io.run();
    by.emit(asio::cancellation_type::terminal);
    CHECK(said == std::error_code{});
    CHECK(m.lease().still_held());
    said.reset();
    io.restart();
    async_unlock(m, cancellable(io, by, said));
    by.emit(asio::cancellation_type::terminal);  // a release goes on
    io.run();
    CHECK(said == std::error_code{});
    CHECK(comes_free(locks, "orders"));
}

TEMPLATE_TEST_CASE("a timer that is faster than the lock cancels it", "", HOLDFAST_LOCKS)
{
    using namespace asio::experimental::awaitable_operators;
    TestType locks;
    holdfast::mutex holder{*locks.other, "orders"};
    holdfast::mutex m{*locks.one, "orders"};
    holder.lock();
    asio::io_context io;
    std::size_t first = 0;
    auto const race = [&](std::chrono::milliseconds limit) -> asio::awaitable<void> {
        asio::steady_timer timer{io, limit};
        auto const won = co_await (async_lock_guard(m, use_awaitable) || timer.async_wait(use_awaitable));
        first = won.index();
        if (first == 0) CHECK(std::get<0>(won).still_held());
    };
    auto const rethrown = [](std::exception_ptr e) {
        if (e) std::rethrow_exception(e);
    };
    asio::co_spawn(io, race(20ms), rethrown);
    io.run();
    CHECK(first == 1);
    holder.unlock();
    io.restart();
    asio::co_spawn(io, race(1min), rethrown);
    io.run();
    CHECK(first == 0);
    CHECK_FALSE(m.lease().still_held());
    for (int i = 0; i < 30; ++i) {  // whoever wins, no hold is left that no one knows of
        io.restart();
        asio::co_spawn(io, race(0ms), rethrown);
        io.run();
        CHECK_FALSE(m.lease().still_held());
    }
    CHECK(comes_free(locks, "orders"));
}
