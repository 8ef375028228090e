// SPDX-License-Identifier: MIT
#pragma once

#include <unistd.h>

#include <cstdint>
#include <utility>

namespace holdfast::test {

/// Owns a descriptor.
class file_descriptor {
public:
    file_descriptor() noexcept = default;
    explicit file_descriptor(int fd) noexcept : fd_{fd} {}
    file_descriptor(file_descriptor&& other) noexcept : fd_{std::exchange(other.fd_, -1)} {}
    file_descriptor& operator=(file_descriptor&& other) noexcept
    {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~file_descriptor()
    {
        if (fd_ >= 0) ::close(fd_);
    }

    [[nodiscard]] int get() const noexcept { return fd_; }
    explicit operator bool() const noexcept { return fd_ >= 0; }

private:
    int fd_ = -1;
};

/// A TCP socket bound to a port of 127.0.0.1, not listening yet: connections are refused. A server that sets
/// SO_REUSEADDR, as Redis and Java do, can listen at the port meanwhile; nobody else is given it.
struct bound_socket {
    file_descriptor fd;
    std::uint16_t port = 0;
};

/// Returns: a socket on a free port outside the range that outgoing connections take theirs from.
/// Inside it, whoever connects again and again to a dead server's port is in the end given that very
/// port and connected to itself, and a server that restarts can find its port taken.
[[nodiscard]] bound_socket bind_free_port();

/// Returns: a non-blocking socket that connects to the port of 127.0.0.1.
[[nodiscard]] file_descriptor start_connecting(std::uint16_t port);

}  // namespace holdfast::test
