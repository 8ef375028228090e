// SPDX-License-Identifier: MIT
//
// Whichever Asio is there.
#include <holdfast/memory.hpp>

#if __has_include(<asio.hpp>)
#include <asio/io_context.hpp>
#include <asio/bind_executor.hpp>
#include <holdfast/asio.hpp>
namespace net = asio;
#else
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <holdfast/boost_asio.hpp>
namespace net = boost::asio;
#endif

int main()
{
    holdfast::memory::store store;
    holdfast::memory::mutex orders{store, "orders/42"};
    net::io_context io;
    bool held = false;
    holdfast::async_lock(orders, net::bind_executor(io, [&](auto const& ec) { held = !ec; }));
    io.run();
    return held ? 0 : 1;
}
