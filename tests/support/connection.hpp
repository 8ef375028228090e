// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

struct redisContext;

namespace holdfast::test {

/// What a Redis server answered.
struct reply {
    enum class kind { nil, integer, string, status, error, array };

    kind type = kind::nil;
    long long integer = 0;
    std::string text;             ///< of a string, status or error
    std::vector<reply> elements;  ///< of an array

    [[nodiscard]] bool is_nil() const noexcept { return type == kind::nil; }
    [[nodiscard]] bool is_error() const noexcept { return type == kind::error; }

    friend bool operator==(reply const&, reply const&) = default;
};

std::ostream& operator<<(std::ostream& out, reply const& value);

/// A bare blocking connection, by which a test looks at a server behind the back of what it tests.
/// Connects when first used and again after a failure; each process has its own after a fork.
/// May be used by several threads.
class connection {
public:
    explicit connection(std::uint16_t port, std::string password = {});
    explicit connection(std::filesystem::path socket, std::string password = {});
    ~connection();

    /// Effects: sends one command and waits up to a minute for its reply; never sends it twice.
    /// Returns: the reply, which may be an error.
    /// Throws: std::runtime_error when there is none.
    reply operator()(std::vector<std::string> const& command);

    /// Returns: what the server sends next by itself. Throws: std::runtime_error when there is nothing for a minute.
    reply read();

    /// Effects: the next command is sent over a new connection.
    void close();

private:
    struct closer {
        void operator()(::redisContext* context) const noexcept;
    };

    void connect();
    reply exchange(std::vector<std::string> const& command);

    std::uint16_t port_ = 0;
    std::filesystem::path socket_;
    std::string password_;
    std::mutex mutex_;
    std::unique_ptr<::redisContext, closer> context_;
    ::pid_t owner_ = 0;
};

}  // namespace holdfast::test
