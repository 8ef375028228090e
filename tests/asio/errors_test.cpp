// SPDX-License-Identifier: MIT
//
// What goes wrong is told by codes that have the library's conditions.
#include "stores.hpp"
#include "support/catch.hpp"

#include <holdfast/asio.hpp>

#include <asio/bind_executor.hpp>
#include <asio/io_context.hpp>
#include <asio/use_future.hpp>

#include <chrono>
#include <stop_token>
#include <system_error>

using namespace std::chrono_literals;
using holdfast::async_lock;
using holdfast::async_lock_guard;
using holdfast::async_try_lock_for;
using holdfast::async_unlock;
using holdfast::test::code_of;

TEST_CASE("a server that cannot be reached is told of by every form")
{
    holdfast::redis::client nowhere{"redis://127.0.0.1:1"};
    holdfast::mutex m{nowhere, "orders", {.unavailable_after = 1ms}};
    CHECK(code_of([&](auto f) { async_lock(m, f); }) == holdfast::errc::unavailable);
    CHECK(code_of([&](auto f) { async_try_lock_for(m, 1ms, f); }) == holdfast::errc::unavailable);
    CHECK(code_of([&](auto f) { async_lock_guard(m, f); }) == holdfast::errc::unavailable);
    CHECK(code_of([&](auto f) { async_lock_guard(m, 1ms, f); }) == holdfast::errc::unavailable);
}

TEST_CASE("a wrong password is told of at once")
{
    holdfast::test::redis_server server{{.password = "right"}};
    holdfast::redis::client client{"redis://:wrong@127.0.0.1:" + std::to_string(server.port())};
    holdfast::mutex m{client, "orders"};
    CHECK(code_of([&](auto f) { async_lock(m, f); }) == holdfast::errc::misconfigured);
    CHECK(code_of([&](auto f) { async_try_lock_for(m, 1h, f); }) == holdfast::errc::misconfigured);
}

TEST_CASE("a guard of a lease that was lost knows it, and so does its release")
{
    holdfast::memory::store store;
    std::error_code heard;
    holdfast::mutex m{store, "orders", {.ttl = 10min, .on_error = [&](holdfast::error const& e) { heard = e.code(); }}};
    auto hold = async_lock_guard(m, asio::use_future).get();
    auto const lost = hold.lost_token();
    CHECK_FALSE(lost.stop_requested());
    store.erase("orders");
    CHECK(code_of([&](auto f) { async_unlock(hold, f); }) == holdfast::errc::lease_lost);
    CHECK(holdfast::test::eventually([&] { return lost.stop_requested(); }));
    CHECK_FALSE(heard);
}

TEST_CASE("time that passes is no error")
{
    holdfast::memory::store store;
    holdfast::mutex holder{store, "orders"};
    holdfast::mutex m{store, "orders"};
    holder.lock();
    CHECK_FALSE(async_try_lock_for(m, 1ms, asio::use_future).get());
    CHECK_FALSE(async_try_lock_for(m, -1h, asio::use_future).get());
    CHECK_FALSE(async_lock_guard(m, 1ms, asio::use_future).get());
    auto waits = async_try_lock_for(m, std::chrono::hours::max(), asio::use_future);
    holder.unlock();
    CHECK(waits.get());
}
