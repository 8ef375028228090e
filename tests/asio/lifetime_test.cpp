// SPDX-License-Identifier: MIT
//
// The mutex, or the last client, is destroyed while calls are pending, also by a handler.
#include "stores.hpp"
#include "support/catch.hpp"
#include "support/process.hpp"

#include <holdfast/asio.hpp>

#include <asio/bind_executor.hpp>
#include <asio/error.hpp>
#include <asio/experimental/deferred.hpp>
#include <asio/io_context.hpp>
#include <asio/use_future.hpp>

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

using namespace std::chrono_literals;
using holdfast::async_lock;
using holdfast::async_lock_guard;
using holdfast::async_unlock;
using holdfast::test::code_of;
using holdfast::test::comes_free;
using holdfast::test::eventually;

TEMPLATE_TEST_CASE("a mutex is destroyed while a call is pending: it is cancelled", "", HOLDFAST_LOCKS)
{
    TestType locks;
    holdfast::mutex holder{GENERATE(true, false) ? *locks.one : *locks.other, "orders"};
    holder.lock();
    std::optional<holdfast::mutex> m{std::in_place, *locks.one, "orders"};
    asio::io_context io;
    std::optional<std::error_code> said;
    std::optional<std::error_code> of_guard;
    async_lock(*m, asio::bind_executor(io, [&](std::error_code ec) { said = ec; }));
    async_lock_guard(*m, asio::bind_executor(io, [&](std::error_code ec, holdfast::async_guard hold) {
        of_guard = ec;
        CHECK_FALSE(hold);
    }));
    std::this_thread::sleep_for(GENERATE(0ms, 10ms));
    m.reset();
    io.run();
    CHECK(said == asio::error::operation_aborted);
    CHECK(of_guard == asio::error::operation_aborted);
    holder.unlock();
    CHECK(comes_free(locks, "orders"));
}

TEMPLATE_TEST_CASE("a handler destroys a mutex whose lock was granted and not told yet", "", HOLDFAST_LOCKS)
{
    TestType locks;
    std::optional<holdfast::mutex> a{std::in_place, *locks.one, "a"};
    std::optional<holdfast::mutex> b{std::in_place, *locks.one, "b"};
    asio::io_context io;
    std::error_code said;
    int count = 0;
    auto const destroys = [&](std::optional<holdfast::mutex>& other) {
        return asio::bind_executor(io, [&](std::error_code ec) {
            if (ec) said = ec;
            ++count;
            other.reset();
        });
    };
    async_lock(*a, destroys(b));
    async_lock(*b, destroys(a));
    REQUIRE(eventually([&] { return a->lease().still_held() && b->lease().still_held(); }));
    std::this_thread::sleep_for(GENERATE(0ms, 5ms));
    io.run();
    CHECK(count == 2);
    CHECK(said == asio::error::operation_aborted);
    a.reset();
    b.reset();
    CHECK(comes_free(locks, "a"));
    CHECK(comes_free(locks, "b"));
}

TEMPLATE_TEST_CASE("a handler destroys the mutex that it was told of, and the last client", "", HOLDFAST_LOCKS)
{
    TestType locks;
    std::optional<holdfast::mutex> m{std::in_place, *locks.one, "orders"};
    std::optional<holdfast::mutex> waits{std::in_place, *locks.one, "orders"};
    asio::io_context io;
    std::optional<std::error_code> said;
    bool held = false;
    async_lock(*m, asio::bind_executor(io, [&](std::error_code ec) {
        held = !ec;
        async_lock(*waits, asio::bind_executor(io, [&](std::error_code later) { said = later; }));
        waits.reset();
        m.reset();
        locks.one.reset();
    }));
    io.run();
    CHECK(held);
    CHECK(said == asio::error::operation_aborted);
    CHECK(comes_free(locks, "orders"));
}

TEMPLATE_TEST_CASE("the last client is destroyed while calls are pending: they go on", "", HOLDFAST_LOCKS)
{
    TestType locks;
    holdfast::mutex holder{*locks.other, "orders"};
    holdfast::mutex m{*locks.one, "orders"};
    holder.lock();
    auto waits = async_lock_guard(m, asio::use_future);
    locks.one.reset();
    CHECK(waits.wait_for(10ms) == std::future_status::timeout);
    holder.unlock();
    auto hold = waits.get();
    CHECK(hold.still_held());
    async_unlock(hold, asio::use_future).get();
    CHECK(comes_free(locks, "orders"));
}

TEMPLATE_TEST_CASE("a guard in a forked child gives nothing back, and says so as an unlock does", "", HOLDFAST_LOCKS)
{
    TestType locks;
    int told = 0;
    holdfast::mutex m{*locks.one, "orders", {.on_error = [&](holdfast::error const& e) {
                          told += e.code() == holdfast::errc::not_owner ? 1 : 10;
                      }}};
    m.lock();
    holdfast::async_guard hold{m, std::adopt_lock};
    auto born = holdfast::test::child::fork([&] {
        m.unlock();
        hold.give_back();
        return told;
    });
    CHECK(born.wait_for(1min) == 2);
    CHECK(hold.still_held());
}

TEMPLATE_TEST_CASE("a call that is begun when its mutex is gone is cancelled", "", HOLDFAST_LOCKS)
{
    TestType locks;
    holdfast::mutex holder{*locks.one, "orders"};
    std::optional<holdfast::mutex> m{std::in_place, *locks.one, "orders"};
    if (GENERATE(true, false)) holder.lock();
    auto lock = async_lock(*m, asio::experimental::deferred);
    auto unlock = async_unlock(*m, asio::experimental::deferred);
    m.reset();
    CHECK(code_of(std::move(lock)) == asio::error::operation_aborted);
    CHECK(code_of(std::move(unlock)) == holdfast::errc::not_owner);
    holder.unlock();
    CHECK(comes_free(locks, "orders"));
}

TEMPLATE_TEST_CASE("a call that is begun when its mutex and the client are gone is cancelled", "", HOLDFAST_LOCKS)
{
    TestType locks;
    std::optional<holdfast::mutex> m{std::in_place, *locks.one, "orders"};
    m->lock();
    auto lock = async_lock(*m, asio::experimental::deferred);
    auto unlock = async_unlock(*m, asio::experimental::deferred);
    m.reset();
    locks.one.reset();
    CHECK(code_of(std::move(lock)) == asio::error::operation_aborted);
    CHECK(code_of(std::move(unlock)) == holdfast::errc::not_owner);
    CHECK(comes_free(locks, "orders"));
}
