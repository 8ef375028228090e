// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/language.hpp>

#include <holdfast/core/abi.hpp>
#include <holdfast/holdfast.hpp>
#include <holdfast/redis/client_options.hpp>
#include <holdfast/redis/error.hpp>
#include <holdfast/redis/opened.hpp>
#include <holdfast/redis/server_status.hpp>
#ifdef HOLDFAST_COMPILED
#include <holdfast/impl/declarations.hpp>
#else
#include <holdfast/impl/redis.hpp>
#endif

#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// One Redis server. Thread-safe; shared by any number of locks, which may outlive it. Connects when it is first
/// needed, and again whenever the connection is lost.
class client : public store {
public:
    /// Effects: prepares a client for the server at `url`, see `parse_url`; no I/O, except for the files that the TLS
    /// options name.
    /// Throws: `error` (`misconfigured`) naming the part of the URL or the option that is wrong.
    explicit client(std::string_view url, client_options options = {}) : client{open_client(url, std::move(options))} {}

    /// As above, for `options.server`.
    explicit client(client_options options) : client{open_client(std::move(options))} {}

    /// Returns: what is known of the server from its connections, without I/O. In a child of `fork`: nothing.
    /// Throws: `std::bad_alloc`.
    [[nodiscard]] server_status status() const
    {
        auto all = servers_->status();
        return all.empty() ? server_status{} : std::move(all.front());
    }

private:
    explicit client(opened with) noexcept : store{std::move(with.locks)}, servers_{std::move(with.servers)} {}

    std::shared_ptr<servers const> servers_;
};

/// A lock on one Redis server. Its key is exactly its name (after the client's prefix), its value the owner token, so
/// that it excludes every other client that uses `SET key token NX PX`.
class mutex : public holdfast::mutex {
public:
    /// Throws: `error` (`misconfigured`) if the name or an option cannot be used; no I/O.
    mutex(client const& on, std::string_view name, lock_options options = {})
        : holdfast::mutex{on, name, std::move(options)}
    {
    }
};

/// A lock on one Redis server that is granted in the order of arrival. See `holdfast::fair_mutex`.
class fair_mutex : public holdfast::fair_mutex {
public:
    /// Throws: `error` (`misconfigured`) if the name or an option cannot be used; no I/O.
    fair_mutex(client const& on, std::string_view name, lock_options options = {})
        : holdfast::fair_mutex{on, name, std::move(options)}
    {
    }
};

/// A semaphore on one Redis server. Its slots are locks of the keys `name#0`, `name#1`, and so on.
class semaphore : public holdfast::semaphore {
public:
    /// Throws: `error` (`misconfigured`) if the name or an option cannot be used, or `max` is not 1 to 1,000; no I/O.
    semaphore(client const& on, std::string_view name, std::ptrdiff_t max, lock_options const& options = {})
        : holdfast::semaphore{on, name, max, options}
    {
    }
};

/// A read-write lock on one Redis server. Its key is exactly its name, as that of a mutex, with which it excludes each
/// other; what readers need is beside it.
class shared_mutex : public holdfast::shared_mutex {
public:
    /// Throws: `error` (`misconfigured`) if the name or an option cannot be used; no I/O.
    shared_mutex(client const& on, std::string_view name, lock_options const& options = {})
        : holdfast::shared_mutex{on, name, options}
    {
    }
};

}  // namespace holdfast::redis
