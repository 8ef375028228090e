// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace holdfast::test {

/// A DNS server (RFC 1035, over UDP) on an address of 127.0.0.0/8, for which every name is one of 127.0.0.1; or which
/// says nothing. Members may be called from any thread, and have taken effect when they return.
class name_server {
public:
    /// `address` is for example "127.0.0.53". Throws: `std::system_error` where the port cannot be had: one below 1024
    /// is for who is root, also in a network namespace of its own.
    explicit name_server(std::string const& address, std::uint16_t port = 53);
    ~name_server();
    name_server(name_server const&) = delete;
    name_server& operator=(name_server const&) = delete;

    /// Effects: what is asked from now on is never answered.
    void silence();
    /// Effects: the first question from now on takes this long, as one that others have to be asked about; what is
    /// asked meanwhile is answered at the same time, and what is asked later at once.
    void answer_after(std::chrono::milliseconds delay);
    void answer_at_once() { answer_after(std::chrono::milliseconds{0}); }

    /// Returns: how many questions came.
    [[nodiscard]] std::size_t questions() const noexcept;

private:
    class impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace holdfast::test
