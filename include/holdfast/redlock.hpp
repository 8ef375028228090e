// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/language.hpp>

#include <holdfast/core/abi.hpp>
#include <holdfast/holdfast.hpp>
#include <holdfast/redis/endpoint.hpp>
#include <holdfast/redis/error.hpp>
#include <holdfast/redis/opened.hpp>
#include <holdfast/redis/server_status.hpp>
#include <holdfast/redlock/masters_options.hpp>
#ifdef HOLDFAST_COMPILED
#include <holdfast/impl/declarations.hpp>
#else
#include <holdfast/impl/redlock.hpp>
#endif

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::redlock {

/// Independent Redis masters, a majority of which grants a lock: not replicas of each other, not the nodes of one
/// cluster. Best an odd number, typically five: an even number is allowed but survives no more failures than one server
/// less. Thread-safe; shared by any number of locks, which may outlive it. Connects when it is first needed.
class masters : public store {
public:
    /// Effects: prepares for the servers at `urls`, see `redis::parse_url`; no I/O, except for the files that the TLS
    /// options name.
    /// Throws: `error` (`misconfigured`): the set is empty, a server is there twice, a URL does not parse, an option
    /// cannot be used.
    masters(std::initializer_list<redis::url> urls, masters_options options = {})
        : masters{open_masters(redis::parse_urls(urls), std::move(options))}
    {
    }
    /// As above, for a list of URLs.
    explicit masters(std::vector<std::string> const& urls, masters_options options = {})
        : masters{open_masters(redis::parse_urls(urls), std::move(options))}
    {
    }
    /// As above, for servers by their addresses.
    explicit masters(std::vector<redis::endpoint> servers, masters_options options = {})
        : masters{open_masters(std::move(servers), std::move(options))}
    {
    }

    /// Returns: what is known of each master from its connections, in the order of the masters, without I/O. In a child
    /// of `fork`: nothing.
    /// Throws: `std::bad_alloc`.
    [[nodiscard]] std::vector<redis::server_status> status() const { return servers_->status(); }

private:
    explicit masters(redis::opened with) noexcept : store{std::move(with.locks)}, servers_{std::move(with.servers)} {}

    std::shared_ptr<redis::servers const> servers_;
};

/// A lock on a majority of independent masters. Stays available while a minority of them is down, hung or refusing.
/// Source: "Distributed Locks with Redis" (redis.io), with fencing tokens, a restart guard and a check of the masters'
/// clocks added.
class mutex : public holdfast::mutex {
public:
    /// Throws: `error` (`misconfigured`) if the name or an option cannot be used; no I/O.
    mutex(masters const& on, std::string_view name, lock_options options = {})
        : holdfast::mutex{on, name, std::move(options)}
    {
    }
};

/// A semaphore on independent masters; each permit is a lock on a majority of them. Stays available while a minority of
/// them is down.
class semaphore : public holdfast::semaphore {
public:
    /// Throws: `error` (`misconfigured`) if the name or an option cannot be used, or `max` is not 1 to 1,000; no I/O.
    semaphore(masters const& on, std::string_view name, std::ptrdiff_t max, lock_options const& options = {})
        : holdfast::semaphore{on, name, max, options}
    {
    }
};

/// A read-write lock on independent masters: as safe as a mutex there, and under the same assumptions. Stays available
/// while a minority of them is down.
class shared_mutex : public holdfast::shared_mutex {
public:
    /// Throws: `error` (`misconfigured`) if the name or an option cannot be used; no I/O.
    shared_mutex(masters const& on, std::string_view name, lock_options const& options = {})
        : holdfast::shared_mutex{on, name, options}
    {
    }
};

}  // namespace holdfast::redlock
