// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/clock.hpp>
#include <holdfast/io/resolver.hpp>

#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
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
    [[nodiscard]] int descriptor() const noexcept { return state_ == state::resolving ? resolver_.descriptor() : fd_; }

    [[nodiscard]] short interest() const noexcept
    {
        if (state_ == state::connecting || !unsent_.empty()) return POLLIN | POLLOUT;
        return POLLIN;
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
        if (::getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) return connect_next();
        state_ = state::open;
        flush();
        return true;
    } catch (...) {
        close();
        return false;
    }

    /// Effects: sends `bytes` behind what was sent before, at once as far as the socket takes them. An error shows when it is read next.
    /// Throws: `std::bad_alloc`, in which case nothing is sent.
    void write(std::string_view bytes)
    {
        unsent_.append(bytes);
        if (state_ == state::open) flush();
    }

    /// Effects: sends what is left. Called when the socket can take more.
    void flush() noexcept
    {
        std::size_t done = 0;
        while (done < unsent_.size()) {
            auto const n = ::send(fd_, unsent_.data() + done, unsent_.size() - done, MSG_NOSIGNAL | MSG_DONTWAIT);
            if (n < 0 && errno == EINTR) continue;
            if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK) done = unsent_.size();
            if (n < 0) break;
            done += static_cast<std::size_t>(n);
        }
        unsent_.erase(0, done);
    }

    /// Returns: how many bytes were read into `buffer`; 0 where there are none now; nothing where the stream has ended.
    [[nodiscard]] std::optional<std::size_t> read(std::span<char> buffer) noexcept
    {
        for (;;) {
            auto const n = ::recv(fd_, buffer.data(), buffer.size(), MSG_DONTWAIT);
            if (n > 0) return static_cast<std::size_t>(n);
            if (n < 0 && errno == EINTR) continue;
            if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return 0;
            return std::nullopt;
        }
    }

    /// Returns: whether there is something to read now.
    [[nodiscard]] bool readable() const noexcept
    {
        pollfd one{.fd = fd_, .events = POLLIN, .revents = 0};
        return ::poll(&one, 1, 0) > 0;
    }

    [[nodiscard]] bool has_unsent() const noexcept { return !unsent_.empty(); }

    void close() noexcept
    {
        resolver_.cancel();
        if (fd_ >= 0) ::close(std::exchange(fd_, -1));
        unsent_.clear();
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
            if (fd_ >= 0) ::close(fd_);
            fd_ = ::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
            if (fd_ < 0) continue;
            int const on = 1;
            if (address.family() != AF_UNIX) ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            bool const connected = ::connect(fd_, address.get(), address.size) == 0;
            if (!connected && errno != EINPROGRESS) continue;
            state_ = connected ? state::open : state::connecting;
            if (connected) flush();
            return true;
        }
        close();
        return false;
    }

    state state_ = state::closed;
    int fd_ = -1;
    resolver resolver_;
    std::vector<socket_address> untried_;  // the next one last
    std::string unsent_;
};

}  // namespace holdfast::io
