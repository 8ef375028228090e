// SPDX-License-Identifier: MIT
#pragma once

#include "loopback.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace holdfast::test {

/// A TCP relay on a free port of 127.0.0.1 that understands nothing of what it passes on, and so can stand in front of a server that talks
/// TLS. Members may be called from any thread.
class byte_relay {
public:
    explicit byte_relay(std::uint16_t target_port);
    byte_relay(byte_relay const&) = delete;
    byte_relay& operator=(byte_relay const&) = delete;
    ~byte_relay();

    [[nodiscard]] std::uint16_t port() const noexcept { return listener_.port; }

    /// What the server says goes on one byte at a time, this far apart; zero ends it.
    void trickle(std::chrono::milliseconds interval);

    enum class ending { reset, end_of_file };

    /// Of what the servers says from now on, on all connections together, so many bytes go on; then the connection whose bytes they are ends
    /// in this way for the client. Once.
    void end_after(std::size_t bytes, ending how);

    /// Returns: what the clients have said so far, all together.
    [[nodiscard]] std::string heard() const;
    /// Returns: how many bytes of the servers were passed on.
    [[nodiscard]] std::size_t passed() const;
    [[nodiscard]] int connections() const;
    /// Returns: how many clients have said that nothing follows, or have gone.
    [[nodiscard]] int left() const;
    /// Returns: whether what `end_after` asked for has come to pass.
    [[nodiscard]] bool ended() const;

private:
    struct line {
        file_descriptor client;
        file_descriptor server;
        std::string held = {};  ///< of the server, for the client
        bool server_gone = false;
        bool over = false;
    };

    void run();
    void pass(line& one, short client_events, short server_events);
    void deliver(line& one);

    bound_socket listener_;
    std::uint16_t target_;
    mutable std::mutex mutex_;
    std::chrono::milliseconds interval_{0};
    std::optional<std::size_t> until_end_;
    ending how_ = ending::reset;
    std::string heard_;
    std::size_t passed_ = 0;
    int connections_ = 0;
    int left_ = 0;
    bool stopping_ = false;
    std::chrono::steady_clock::time_point next_{};
    std::list<line> lines_;
    std::thread thread_;
};

}  // namespace holdfast::test
