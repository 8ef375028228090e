// SPDX-License-Identifier: MIT
//
// Both Asios in one file.
#include "stores.hpp"
#include "support/catch.hpp"

#include <holdfast/asio.hpp>
#include <holdfast/boost_asio.hpp>

#include <asio/bind_executor.hpp>
#include <asio/io_context.hpp>
#include <asio/use_future.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include <chrono>
#include <system_error>
#include <type_traits>

using namespace std::chrono_literals;

TEMPLATE_TEST_CASE("both Asios lock in one file", "", HOLDFAST_LOCKS)
{
    TestType locks;
    holdfast::mutex m{*locks.one, "orders"};
    holdfast::mutex second{*locks.other, "orders"};

    // A token says whose it is.
    auto hold = holdfast::async_lock_guard(m, asio::use_future).get();
    CHECK_FALSE(holdfast::async_try_lock_for(second, 1ms, boost::asio::use_future).get());
    holdfast::async_unlock(hold, boost::asio::use_future).get();  // one guard for both

    // A handler that takes either code does not.
    asio::io_context io;
    boost::asio::io_context boost_io;
    bool held = false;
    bool boost_held = false;
    holdfast::standalone_asio::async_lock(
        m, asio::bind_executor(io, [&](auto ec) { held = !ec && std::is_same_v<decltype(ec), std::error_code>; }));
    io.run();
    m.unlock();
    holdfast::boost_asio::async_lock(second, boost::asio::bind_executor(boost_io, [&](auto ec) {
                                         boost_held = !ec && std::is_same_v<decltype(ec), boost::system::error_code>;
                                     }));
    boost_io.run();
    CHECK(held);
    CHECK(boost_held);
}
