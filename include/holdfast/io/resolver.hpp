// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/signals_blocked.hpp>
#include <holdfast/io/wake_up.hpp>

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::io {

/// An address of a stream socket.
struct socket_address {
    sockaddr_storage storage{};
    socklen_t size = 0;

    [[nodiscard]] int family() const noexcept { return storage.ss_family; }
    [[nodiscard]] sockaddr const* get() const noexcept { return reinterpret_cast<sockaddr const*>(&storage); }
};

/// Returns: the address of the Unix socket at `path`; none if the path is too long for one.
[[nodiscard]] inline std::optional<socket_address> unix_address(std::string const& path) noexcept
{
    sockaddr_un un{};
    if (path.size() >= sizeof un.sun_path) return std::nullopt;
    un.sun_family = AF_UNIX;
    std::memcpy(un.sun_path, path.c_str(), path.size() + 1);
    socket_address address;
    std::memcpy(&address.storage, &un, sizeof un);
    address.size = sizeof un;
    return address;
}

/// The result of a name look-up: addresses in the order in which to try them, or why there are none.
struct resolution {
    std::vector<socket_address> found;
    std::string why;
};

/// Returns: the addresses of `host`.
[[nodiscard]] inline resolution resolve(std::string const& host, std::string const& port, int flags)
{
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = flags | AI_NUMERICSERV;
    addrinfo* list = nullptr;
    resolution got;
    if (int const error = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &list); error != 0) {
        got.why = error == EAI_SYSTEM ? std::system_category().message(errno) : ::gai_strerror(error);
        return got;
    }
    std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> const owner{list, &::freeaddrinfo};
    for (auto const* one = list; one; one = one->ai_next) {
        socket_address address;
        std::memcpy(&address.storage, one->ai_addr, one->ai_addrlen);
        address.size = one->ai_addrlen;
        got.found.push_back(address);
    }
    return got;
}

/// Looks up a host name without blocking the caller: `getaddrinfo` takes no deadline, so it runs in a thread of its
/// own. That thread ends with the look-up; if this takes too long, it outlives the caller. If the same name is asked
/// for again meanwhile, the same look-up is used: while name servers do not answer, there is one thread for each
/// resolver. Addresses in digits need no thread.
class resolver {
public:
    resolver() = default;
    resolver(resolver const&) = delete;
    resolver& operator=(resolver const&) = delete;
    ~resolver() = default;

    /// Effects: begins to look up `host`. Throws: `std::system_error` if the system has no thread or descriptor
    /// left; `std::bad_alloc`.
    void start(std::string const& host, std::string const& port)
    {
        cancel();
        if (left_ && left_->under_way(host, port)) {
            shared_ = std::move(left_);
            return;
        }
        left_.reset();
        auto const begun = std::make_shared<look_up>(host, port);
        holdfast::detail::signals_blocked const while_starting;
        std::thread{[shared = begun] {
            resolution got;
            try {
                got = resolve(shared->host, shared->port, AI_ADDRCONFIG);
            } catch (std::bad_alloc const&) {
                got.found.clear();
            }
            std::scoped_lock guard{shared->mutex};
            shared->got = std::move(got);
            shared->ended = true;
            shared->done.signal();
        }}.detach();
        shared_ = begun;
    }

    /// Effects: notes that the name is not needed for now; the look-up goes on.
    void cancel() noexcept
    {
        if (shared_) left_ = std::move(shared_);
        shared_.reset();
    }

    /// Returns: a descriptor that is readable when the look-up has ended; negative if there is none.
    [[nodiscard]] int descriptor() const noexcept { return shared_ ? shared_->done.descriptor() : -1; }

    /// Effects: ends the look-up. Returns: what it found.
    [[nodiscard]] resolution take()
    {
        auto const ended = std::exchange(shared_, nullptr);
        std::scoped_lock guard{ended->mutex};
        return std::move(ended->got);
    }

private:
    struct look_up {
        look_up(std::string h, std::string p) : host{std::move(h)}, port{std::move(p)} {}

        [[nodiscard]] bool under_way(std::string const& h, std::string const& p)
        {
            std::scoped_lock guard{mutex};
            return !ended && host == h && port == p;
        }

        std::string const host;
        std::string const port;
        std::mutex mutex;
        bool ended = false;
        resolution got;
        wake_up const done;
    };

    std::shared_ptr<look_up> shared_;  // the one that is waited for
    std::shared_ptr<look_up> left_;    // the one that was cancelled last
};

}  // namespace holdfast::io
