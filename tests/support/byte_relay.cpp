// SPDX-License-Identifier: MIT
#include "byte_relay.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>
#include <vector>

namespace holdfast::test {
namespace {

constexpr int tick_ms = 5;

/// Returns: how many bytes came; negative where none came for now; 0 at the end.
ssize_t receive(int fd, std::array<char, 4096>& buffer)
{
    auto const n = ::recv(fd, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (n >= 0) return n;
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? -1 : 0;
}

void reset(int fd)
{
    linger const now{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

}  // namespace

byte_relay::byte_relay(std::uint16_t target_port) : listener_{bind_free_port()}, target_{target_port}
{
    ::listen(listener_.fd.get(), 16);
    thread_ = std::thread{[this] { run(); }};
}

byte_relay::~byte_relay()
{
    {
        std::scoped_lock guard{mutex_};
        stopping_ = true;
    }
    thread_.join();
}

void byte_relay::trickle(std::chrono::milliseconds interval)
{
    std::scoped_lock guard{mutex_};
    interval_ = interval;
}

void byte_relay::end_after(std::size_t bytes, ending how)
{
    std::scoped_lock guard{mutex_};
    until_end_ = bytes;
    how_ = how;
}

std::string byte_relay::heard() const
{
    std::scoped_lock guard{mutex_};
    return heard_;
}

std::size_t byte_relay::passed() const
{
    std::scoped_lock guard{mutex_};
    return passed_;
}

int byte_relay::connections() const
{
    std::scoped_lock guard{mutex_};
    return connections_;
}

int byte_relay::left() const
{
    std::scoped_lock guard{mutex_};
    return left_;
}

bool byte_relay::ended() const
{
    std::scoped_lock guard{mutex_};
    return !until_end_;
}

void byte_relay::run()
{
    for (;;) {
        std::vector<pollfd> polled{{.fd = listener_.fd.get(), .events = POLLIN, .revents = 0}};
        for (auto const& one : lines_) {
            polled.push_back({.fd = one.client.get(), .events = POLLIN, .revents = 0});
            polled.push_back({.fd = one.held.empty() && !one.server_gone ? one.server.get() : -1, .events = POLLIN, .revents = 0});
        }
        ::poll(polled.data(), polled.size(), tick_ms);
        std::scoped_lock guard{mutex_};
        if (stopping_) return;
        std::size_t at = 1;
        for (auto& one : lines_) {
            pass(one, polled[at].revents, polled[at + 1].revents);
            at += 2;
        }
        lines_.remove_if([](auto const& one) { return one.over; });
        if (polled[0].revents != 0) {
            file_descriptor client{::accept4(listener_.fd.get(), nullptr, nullptr, SOCK_CLOEXEC)};
            if (!client) continue;
            ++connections_;
            lines_.push_back({std::move(client), start_connecting(target_)});
        }
    }
}

void byte_relay::pass(line& one, short client_events, short server_events)
{
    std::array<char, 4096> buffer{};
    if (client_events != 0) {
        auto const n = receive(one.client.get(), buffer);
        if (n == 0) {
            one.over = true;
            ++left_;
            return;
        }
        if (n > 0) {
            heard_.append(buffer.data(), static_cast<std::size_t>(n));
            pollfd writable{.fd = one.server.get(), .events = POLLOUT, .revents = 0};
            ::poll(&writable, 1, 5000);  // until it is connected
            ::send(one.server.get(), buffer.data(), static_cast<std::size_t>(n), MSG_NOSIGNAL);
        }
    }
    if (server_events != 0 && one.held.empty() && !one.server_gone) {
        auto const n = receive(one.server.get(), buffer);
        if (n == 0) {  // the client may still have something to say
            one.server_gone = true;
            ::shutdown(one.client.get(), SHUT_WR);
        }
        if (n > 0) one.held.assign(buffer.data(), static_cast<std::size_t>(n));
    }
    deliver(one);
}

void byte_relay::deliver(line& one)
{
    auto const now = std::chrono::steady_clock::now();
    if (one.held.empty() || (interval_.count() > 0 && now < next_)) return;
    next_ = now + interval_;
    auto count = interval_.count() > 0 ? 1 : one.held.size();
    if (until_end_) count = std::min(count, *until_end_);
    ::send(one.client.get(), one.held.data(), count, MSG_NOSIGNAL);
    one.held.erase(0, count);
    passed_ += count;
    if (!until_end_) return;
    *until_end_ -= count;
    if (*until_end_ > 0) return;
    until_end_.reset();
    one.over = true;
    if (how_ == ending::reset)
        reset(one.client.get());
    else
        ::shutdown(one.client.get(), SHUT_WR);
}

}  // namespace holdfast::test
