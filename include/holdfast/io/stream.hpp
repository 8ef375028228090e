// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/clock.hpp>
#include <holdfast/io/outlet.hpp>
#include <holdfast/io/resolver.hpp>

#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::io {

/// Where a stream leads: a host and port, or a Unix socket.
struct stream_target {
    std::string host;
    std::string port;
    std::string path;  ///< of a Unix socket, in place of host and port
};

/// A stream socket that never blocks.
///
/// | state      | descriptor  | left by |
/// |------------|-------------|---------|
/// | closed     | -           | open → resolving, connecting |
/// | resolving  | of look-up  | addresses → connecting; none → closed |
/// | connecting | of socket   | connected → open; refused → connecting to the next address, or closed |
/// | open       | of socket   | close, end of file, an error → closed |
class stream {
public:
    enum class state : std::uint8_t { closed, resolving, connecting, open };

    stream() = default;
    stream(stream const&) = delete;
    stream& operator=(stream const&) = delete;
    ~stream() { close(); }

    [[nodiscard]] state now() const noexcept { return state_; }
    [[nodiscard]] int descriptor() const noexcept { return state_ == state::resolving ? resolver_.descriptor() : fd(); }

    [[nodiscard]] short interest() const noexcept
    {
        return state_ == state::connecting || (out_ && out_->blocked()) ? POLLIN | POLLOUT : POLLIN;
    }

    /// Effects: begins to connect. Returns: whether it may succeed.
    bool open(stream_target const& target)
    try {
        close();
        if (!target.path.empty()) {
            auto const address = unix_address(target.path);
            return address && connect_to({*address});
        }
        auto numeric = resolve(target.host, target.port, AI_NUMERICHOST);
        if (!numeric.empty()) return connect_to(std::move(numeric));
        resolver_.start(target.host, target.port);
        state_ = state::resolving;
        return true;
    } catch (...) {  // no memory, thread or descriptor left: as good as not reachable
        close();
        return false;
    }

    /// Effects: goes on with opening after an event. Returns: whether it may still succeed, or has: see `now()`.
    bool go_on()
    try {
        if (state_ == state::resolving) return connect_to(resolver_.take());
        int error = 0;
        socklen_t size = sizeof error;
        if (::getsockopt(fd(), SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) return connect_next();
        state_ = state::open;
        return true;
    } catch (...) {
        close();
        return false;
    }

    /// Returns: where bytes to be sent are put. Requires: `now()` is `open`.
    [[nodiscard]] std::shared_ptr<outlet> const& out() const noexcept { return out_; }

    /// Returns: how many bytes were read into `buffer`; 0 where there are none now; nothing where the stream has ended.
    [[nodiscard]] std::optional<std::size_t> read(std::span<char> buffer) noexcept
    {
        for (;;) {
            auto const n = ::recv(fd(), buffer.data(), buffer.size(), MSG_DONTWAIT);
            if (n > 0) return static_cast<std::size_t>(n);
            if (n < 0 && errno == EINTR) continue;
            if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return 0;
            return std::nullopt;
        }
    }

    /// Returns: whether there is something to read now.
    [[nodiscard]] bool readable() const noexcept
    {
        pollfd one{.fd = fd(), .events = POLLIN, .revents = 0};
        return ::poll(&one, 1, 0) > 0;
    }

    /// Effects: closes the stream; what was to be sent before still goes out as far as the socket takes it.
    void close() noexcept
    {
        resolver_.cancel();
        if (out_ && state_ == state::open) out_->flush();
        out_.reset();
        untried_.clear();
        state_ = state::closed;
    }

private:
    bool connect_to(std::vector<socket_address> addresses)
    {
        untried_.assign(addresses.rbegin(), addresses.rend());
        return connect_next();
    }

    bool connect_next()
    {
        while (!untried_.empty()) {
            auto const address = untried_.back();
            untried_.pop_back();
            int const fd = ::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
            if (fd < 0) continue;
            out_ = std::make_shared<outlet>(fd);
            int const on = 1;
            if (address.family() != AF_UNIX) ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            bool const connected = ::connect(fd, address.get(), address.size) == 0;
            if (!connected && errno != EINPROGRESS) continue;
            state_ = connected ? state::open : state::connecting;
            return true;
        }
        close();
        return false;
    }

    [[nodiscard]] int fd() const noexcept { return out_ ? out_->descriptor() : -1; }

    state state_ = state::closed;
    std::shared_ptr<outlet> out_;
    resolver resolver_;
    std::vector<socket_address> untried_;  // the next one last
};

}  // namespace holdfast::io
