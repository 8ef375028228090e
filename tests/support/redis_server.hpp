// SPDX-License-Identifier: MIT
#pragma once

#include "connection.hpp"
#include "loopback.hpp"
#include "process.hpp"
#include "temporary_folder.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::test {

/// Files in PEM form with which a server talks TLS, and nothing else, on its port.
struct redis_tls {
    std::filesystem::path certificate;
    std::filesystem::path key;
    std::filesystem::path authority;  ///< who signs the clients' certificates
    bool asks_client = false;         ///< clients have to show a certificate
};

struct redis_options {
    /// Of the default user, which `url()` and `command()` use; none when empty.
    std::string password = {};
    /// More lines of redis.conf, for example "user app on >secret ~* &* +@all".
    std::vector<std::string> config = {};
    std::optional<redis_tls> tls = {};
    /// More of its environment, for example "LD_PRELOAD=/lib/x.so".
    std::vector<std::string> environment = {};
    /// Looked up in PATH.
    std::string program = "redis-server";
};

/// A real Redis server without persistence, on a free port of 127.0.0.1 and a socket in a temporary
/// folder. It answers when the constructor returns and never outlives this process.
/// Its uptime begins at 0, so a client with a restart guard will not trust it at first.
class redis_server {
public:
    /// Throws: std::runtime_error with the server's log when it does not answer within a minute.
    explicit redis_server(redis_options options = {});
    redis_server(redis_server&&) noexcept = default;
    redis_server& operator=(redis_server&&) noexcept = default;
    ~redis_server() = default;

    [[nodiscard]] std::uint16_t port() const noexcept { return at_.port; }
    [[nodiscard]] std::string url() const;
    [[nodiscard]] std::string url(std::string const& user, std::string const& password,
                                  std::string const& host = "127.0.0.1") const;
    [[nodiscard]] std::filesystem::path socket() const { return folder_.path() / "redis.sock"; }
    [[nodiscard]] std::string unix_url() const { return "unix://" + socket().string(); }
    [[nodiscard]] ::pid_t pid() const noexcept { return process_.pid(); }
    [[nodiscard]] bool running() { return process_.running(); }
    [[nodiscard]] bool paused() const noexcept { return process_.paused(); }
    [[nodiscard]] std::string log() const;

    /// SIGSTOP and SIGCONT. While paused the kernel still accepts connections and data for it.
    void pause() { process_.pause(); }
    void resume() { process_.resume(); }
    /// SIGKILL, and gone when this returns.
    void kill() { process_.kill(); }
    /// Effects: killed if it still runs; comes back on the same port with what `SAVE` wrote last; mostly nothing.
    void restart();

    /// Effects: sends one command over a connection of its own, by the socket: it works whatever
    /// happens to the port. Throws: std::runtime_error when there is no reply within a minute.
    reply command(std::vector<std::string> const& words) { return (*inspector_)(words); }

    /// Returns: for how long it has run, as it says itself.
    [[nodiscard]] std::chrono::seconds uptime();

private:
    void start();
    [[nodiscard]] bool answers();
    void launch();

    redis_options options_;
    temporary_folder folder_;
    bound_socket at_ = bind_free_port();  // nobody else is given the port while the server starts, or is down
    std::unique_ptr<connection> inspector_;
    child process_;  // last: it ends before its folder goes
};

/// Several independent servers.
class redis_fleet {
public:
    explicit redis_fleet(std::size_t size, redis_options const& options = {});

    [[nodiscard]] std::size_t size() const noexcept { return servers_.size(); }
    [[nodiscard]] std::vector<std::string> urls() const;
    [[nodiscard]] std::vector<std::string> urls(std::string const& user, std::string const& password) const;
    [[nodiscard]] std::vector<std::uint16_t> ports() const;
    [[nodiscard]] redis_server& operator[](std::size_t i) { return servers_.at(i); }
    [[nodiscard]] auto begin() noexcept { return servers_.begin(); }
    [[nodiscard]] auto end() noexcept { return servers_.end(); }

    void kill(std::size_t i) { servers_.at(i).kill(); }
    void pause(std::size_t i) { servers_.at(i).pause(); }
    void resume(std::size_t i) { servers_.at(i).resume(); }
    void restart(std::size_t i) { servers_.at(i).restart(); }

    /// Returns: the reply of every server; of one that is down or paused, nil.
    std::vector<reply> command(std::vector<std::string> const& words);

private:
    std::vector<redis_server> servers_;
};

}  // namespace holdfast::test
