// SPDX-License-Identifier: MIT
#pragma once

#include "../support/loopback.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <string>
#include <string_view>

namespace holdfast::test {

/// Sends and receives bytes as they are, to see what a proxy makes of them.
class raw_client {
public:
    explicit raw_client(std::uint16_t port) : fd_{start_connecting(port)}
    {
        ::pollfd connected{fd_.get(), POLLOUT, 0};
        ::poll(&connected, 1, 10'000);
    }

    void send(std::string_view bytes) { ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL); }

    /// Returns: what arrived until there were `count` bytes or the connection ended or `limit` passed.
    std::string receive(std::size_t count, std::chrono::milliseconds limit = std::chrono::seconds{10})
    {
        auto const deadline = std::chrono::steady_clock::now() + limit;
        std::string all;
        while (all.size() < count && error_ == 0) {
            auto const left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
            ::pollfd readable{fd_.get(), POLLIN, 0};
            if (left.count() <= 0 || ::poll(&readable, 1, static_cast<int>(left.count())) == 0) break;
            std::array<char, 4096> buffer{};
            auto const got = ::recv(fd_.get(), buffer.data(), std::min(buffer.size(), count - all.size()), 0);
            if (got > 0)
                all.append(buffer.data(), static_cast<std::size_t>(got));
            else if (got == 0 || errno != EAGAIN)
                error_ = got == 0 ? end_of_file : errno;
        }
        return all;
    }

    /// Returns: how the connection ended: an errno, `end_of_file`, or 0 if it has not.
    [[nodiscard]] int error() const noexcept { return error_; }

    static constexpr int end_of_file = -1;

private:
    file_descriptor fd_;
    int error_ = 0;
};

}  // namespace holdfast::test
