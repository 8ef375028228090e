// SPDX-License-Identifier: MIT
#include "redis_server.hpp"

#include "overheard.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
constexpr auto start_limit = 60s;

// Between fork and exec: calls nothing that could wait for a lock of another thread.
int become(char const* const* words, char const* const* environment, char const* log)
{
    int const out = ::open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(out, STDERR_FILENO);
    // A client's socket that lived on in here would look like a connection its owner never closed.
    if (::syscall(SYS_close_range, 3U, ~0U, 0U) != 0)
        for (int fd = 3; fd < 4096; ++fd) ::close(fd);
    ::execvpe(words[0], const_cast<char* const*>(words), const_cast<char* const*>(environment));
    ::_exit(127);
}

}  // namespace

redis_server::redis_server(redis_options options)
    : options_{std::move(options)}, inspector_{std::make_unique<connection>(socket(), options_.password)}
{
    everything_heard().keep(options_.password);
    start();
}

std::string redis_server::url() const { return url("", options_.password); }

std::string redis_server::url(std::string const& user, std::string const& password, std::string const& host) const
{
    everything_heard().keep(password);
    auto const who = user.empty() && password.empty() ? "" : user + ':' + password + '@';
    return (options_.tls ? "rediss://" : "redis://") + who + host + ':' + std::to_string(at_.port);
}

std::string redis_server::log() const
{
    std::ifstream file{folder_.path() / "redis.log"};
    return {std::istreambuf_iterator<char>{file}, {}};
}

void redis_server::restart()
{
    kill();
    start();
}

void redis_server::start()
{
    auto const deadline = std::chrono::steady_clock::now() + start_limit;
    launch();
    for (auto pause = 500us; !answers(); pause = std::min<std::chrono::microseconds>(2 * pause, 5ms)) {
        if (auto const status = process_.exit_status(); status || std::chrono::steady_clock::now() >= deadline)
            throw std::runtime_error{options_.program +
                                     (status ? " ended with status " + std::to_string(*status) : " does not answer") +
                                     ": " + log()};
        std::this_thread::sleep_for(pause);
    }
}

/// It listens on the socket after the port, and only this server has the socket: so whoever answers
/// there has the port too.
bool redis_server::answers()
{
    try {
        static_cast<void>(command({"PING"}));
        return true;
    } catch (std::runtime_error const&) {
        return false;
    }
}

void redis_server::launch()
{
    auto const config = (folder_.path() / "redis.conf").string();
    {
        std::ofstream file{config};
        file << "bind 127.0.0.1\n"
             << (options_.tls ? "port 0\ntls-port " : "port ") << at_.port << "\nunixsocket " << socket().string()
             << "\ndir " << folder_.path().string() << "\nsave \"\"\nappendonly no\ndaemonize no\n";
        if (!options_.password.empty()) file << "requirepass " << options_.password << '\n';
        if (auto const& tls = options_.tls)
            file << "tls-cert-file " << tls->certificate.string() << "\ntls-key-file " << tls->key.string()
                 << "\ntls-ca-cert-file " << tls->authority.string() << "\ntls-auth-clients "
                 << (tls->asks_client ? "yes" : "no") << '\n';
        for (auto const& line : options_.config) file << line << '\n';
    }
    auto const log = (folder_.path() / "redis.log").string();
    char const* const words[] = {options_.program.c_str(), config.c_str(), nullptr};
    std::vector<char const*> environment;
    for (auto const* const* one = ::environ; *one != nullptr; ++one) environment.push_back(*one);
    for (auto const& one : options_.environment) environment.push_back(one.c_str());
    environment.push_back(nullptr);
    inspector_->close();
    process_ = child::fork([&] { return become(words, environment.data(), log.c_str()); });
}

redis_fleet::redis_fleet(std::size_t size, redis_options const& options)
{
    servers_.reserve(size);
    for (std::size_t i = 0; i < size; ++i) servers_.emplace_back(options);
}

std::chrono::seconds redis_server::uptime()
{
    std::string const field = "uptime_in_seconds:";
    auto const info = command({"INFO", "server"}).text;
    auto const at = info.find(field);
    return std::chrono::seconds{at == std::string::npos ? 0 : std::stol(info.substr(at + field.size()))};
}

std::vector<std::string> redis_fleet::urls() const
{
    std::vector<std::string> all;
    for (auto const& server : servers_) all.push_back(server.url());
    return all;
}

std::vector<std::string> redis_fleet::urls(std::string const& user, std::string const& password) const
{
    std::vector<std::string> all;
    for (auto const& server : servers_) all.push_back(server.url(user, password));
    return all;
}

std::vector<std::uint16_t> redis_fleet::ports() const
{
    std::vector<std::uint16_t> all;
    for (auto const& server : servers_) all.push_back(server.port());
    return all;
}

std::vector<reply> redis_fleet::command(std::vector<std::string> const& words)
{
    std::vector<reply> all;
    for (auto& server : servers_) all.push_back(server.running() && !server.paused() ? server.command(words) : reply{});
    return all;
}

}  // namespace holdfast::test
