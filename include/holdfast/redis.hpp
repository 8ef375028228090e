// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/language.hpp>

#include <holdfast/holdfast.hpp>
#include <holdfast/lock/basic_mutex.hpp>
#include <holdfast/redis/client_options.hpp>
#include <holdfast/redis/error.hpp>
#include <holdfast/redis/server_status.hpp>

#include <memory>
#include <string_view>
#include <utility>

namespace holdfast::redis {

class fleet;

/// One Redis server. Thread-safe; shared by any number of locks, which may outlive it. Connects when it is first needed, and again
/// whenever the connection is lost.
class client {
public:
    /// Effects: prepares a client for the server at `url`, see `parse_url`; no I/O, but for the files that the TLS options name.
    /// Throws: `error` (`misconfigured`) naming the part of the URL or the option that is wrong.
    explicit client(std::string_view url, client_options options = {});

    /// As above, for `options.server`.
    explicit client(client_options options);

    /// Returns: what is known of the server from its connections, without I/O. In a child of `fork`: nothing.
    /// Throws: `std::bad_alloc`.
    [[nodiscard]] server_status status() const;

private:
    friend class mutex;

    std::shared_ptr<holdfast::detail::domain<fleet>> domain_;
};

/// A lock on one Redis server. Its key is exactly its name (behind the client's prefix), its value the owner token, so that it excludes
/// every other client that uses `SET key token NX PX`. Meets `Lock`; see `basic_mutex` for its members.
class mutex : public basic_mutex<fleet> {
public:
    /// Throws: `error` (`misconfigured`) where the name or an option cannot be used; no I/O.
    mutex(client& on, std::string_view name, lock_options options = {}) : basic_mutex{on.domain_, name, std::move(options)} {}
};

}  // namespace holdfast::redis

#ifdef HOLDFAST_SEPARATE_COMPILATION
extern template class holdfast::basic_mutex<holdfast::redis::fleet>;
#else
#include <holdfast/source/redis.hpp>
#endif
