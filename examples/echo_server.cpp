// SPDX-License-Identifier: MIT
//
// A TCP server whose coroutines lock. Each line that a client sends, "NAME TEXT", is answered with the fencing token of
// the lock echo/NAME: "TOKEN TEXT". No thread waits for a lock, however many clients there are; other processes may use
// the same locks. A client takes no other lock than one of those.
//
//   echo_server [URL [PORT]]      redis://127.0.0.1:6379; without a port it serves a few clients of its own, and ends
#include <holdfast/asio.hpp>
#include <holdfast/redis.hpp>

#include <asio/awaitable.hpp>
#include <asio/buffer.hpp>
#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read_until.hpp>
#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/write.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iostream>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

using namespace std::chrono_literals;
using asio::use_awaitable;
using asio::ip::tcp;

namespace {

constexpr std::size_t longest_line = 4096;

/// Returns: the next line without its end; empty at the end of the stream, and if the line is too long.
asio::awaitable<std::string> line_from(tcp::socket& socket, std::string& read)
{
    asio::error_code ec;
    auto const size = co_await asio::async_read_until(socket, asio::dynamic_buffer(read, longest_line), '\n',
                                                      asio::redirect_error(use_awaitable, ec));
    if (ec) co_return "";
    auto line = read.substr(0, size - 1);
    read.erase(0, size);
    co_return line;
}

asio::awaitable<void> serve(tcp::socket socket, holdfast::redis::client redis)
{
    std::string read;
    for (;;) {
        auto const line = co_await line_from(socket, read);
        if (line.empty()) co_return;
        auto const space = line.find(' ');
        std::string answer = "busy\n";
        holdfast::mutex lock{redis, "echo/" + line.substr(0, space)};
        if (auto hold = co_await holdfast::async_lock_guard(lock, 5s, use_awaitable)) {
            answer = std::to_string(hold.fencing_token()) + line.substr(std::min(space, line.size())) + '\n';
            co_await holdfast::async_unlock(hold, use_awaitable);
        }
        co_await asio::async_write(socket, asio::buffer(answer), use_awaitable);
    }
}

/// Effects: says why a client is served no longer; the others are.
void report(std::exception_ptr const& failed)
try {
    if (failed) std::rethrow_exception(failed);
} catch (std::exception const& e) {
    std::cerr << "a client: " << e.what() << '\n';
}

asio::awaitable<void> listen(tcp::acceptor& acceptor, holdfast::redis::client redis)
{
    auto const executor = co_await asio::this_coro::executor;
    for (;;) {
        asio::error_code ec;
        auto socket = co_await acceptor.async_accept(asio::redirect_error(use_awaitable, ec));
        if (ec) {  // a client is gone already, or there are too many open files
            std::cerr << "accept: " << ec.message() << '\n';
            asio::steady_timer pause{executor, 100ms};
            co_await pause.async_wait(use_awaitable);
        } else {
            asio::co_spawn(executor, serve(std::move(socket), redis), report);
        }
    }
}

/// Sends a few lines, and keeps the tokens that it is answered.
asio::awaitable<void> ask(tcp::endpoint server, int number, std::set<std::uint64_t>& tokens)
{
    tcp::socket socket{co_await asio::this_coro::executor};
    co_await socket.async_connect(server, use_awaitable);
    std::string read;
    for (int i = 0; i < 3; ++i) {
        auto const text = "client " + std::to_string(number);
        co_await asio::async_write(socket, asio::buffer("orders/" + std::to_string(i % 2) + ' ' + text + '\n'),
                                   use_awaitable);
        auto const line = co_await line_from(socket, read);
        auto const space = line.find(' ');
        if (space == std::string::npos || line.substr(space + 1) != text)
            throw std::runtime_error{"not an echo: " + line};
        tokens.insert(std::stoull(line.substr(0, space)));
    }
}

}  // namespace

int main(int argc, char** argv)
try {
    holdfast::redis::client redis{argc > 1 ? argv[1] : "redis://127.0.0.1:6379"};
    std::exception_ptr failed;
    asio::io_context io{1};
    auto const port = static_cast<asio::ip::port_type>(argc > 2 ? std::stoi(argv[2]) : 0);
    tcp::acceptor acceptor{io, {asio::ip::make_address("127.0.0.1"), port}};
    asio::co_spawn(io, listen(acceptor, redis), [&](std::exception_ptr e) {
        failed = e;
        io.stop();
    });
    if (port != 0) {
        io.run();
        if (failed) std::rethrow_exception(failed);
        return 0;
    }

    constexpr int clients = 8;
    std::set<std::uint64_t> tokens;
    int left = clients;
    for (int i = 0; i < clients; ++i)
        asio::co_spawn(io, ask(acceptor.local_endpoint(), i, tokens), [&](std::exception_ptr e) {
            if (e) failed = e;
            if (--left == 0) io.stop();
        });
    io.run();
    if (failed) std::rethrow_exception(failed);
    std::cout << clients << " clients were answered, with " << tokens.size() << " fencing tokens" << std::endl;
    return 0;
} catch (std::exception const& e) {
    std::cerr << e.what() << '\n';
    return 1;
}
