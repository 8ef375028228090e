// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/language.hpp>

#include <holdfast/holdfast.hpp>
#include <holdfast/lock/basic_mutex.hpp>
#include <holdfast/redis/endpoint.hpp>
#include <holdfast/redis/error.hpp>
#include <holdfast/redis/server_status.hpp>
#include <holdfast/redlock/masters_options.hpp>

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::redis {
class fleet;
}

namespace holdfast::redlock {

/// Independent Redis masters, a majority of which grants a lock: not replicas of each other, not the nodes of one cluster. Best an odd
/// number, typically five: an even number is allowed but survives no more failures than one less. Thread-safe; shared by any number of
/// locks, which may outlive it. Connects when it is first needed.
class masters {
public:
    /// Effects: prepares for the servers at `urls`, see `redis::parse_url`; no I/O, but for the files that the TLS options name.
    /// Throws: `error` (`misconfigured`): the set is empty or one is there twice, a URL does not parse, an option cannot be used.
    masters(std::initializer_list<redis::url> urls, masters_options options = {});
    explicit masters(std::vector<std::string> const& urls, masters_options options = {});
    explicit masters(std::vector<redis::endpoint> servers, masters_options options = {});

    /// Returns: what is known of each master, in their order from its connections, without I/O. In a child of `fork`: nothing.
    /// Throws: `std::bad_alloc`.
    [[nodiscard]] std::vector<redis::server_status> status() const;

private:
    friend class mutex;

    std::shared_ptr<holdfast::detail::domain<redis::fleet>> domain_;
};

/// A lock on a majority of independent masters. Stays available while a minority of them is down, hung or refusing. Meets `Lock`; see
/// `basic_mutex` for its members.
/// Source: "Distributed Locks with Redis" (redis.io), with fencing tokens, a restart guard and a check of the masters' clocks added.
class mutex : public basic_mutex<redis::fleet> {
public:
    /// Throws: `error` (`misconfigured`) where the name or an option cannot be used; no I/O.
    mutex(masters& on, std::string_view name, lock_options options = {}) : basic_mutex{on.domain_, name, std::move(options)} {}
};

}  // namespace holdfast::redlock

#ifdef HOLDFAST_SEPARATE_COMPILATION
extern template class holdfast::basic_mutex<holdfast::redis::fleet>;
#else
#include <holdfast/source/redlock.hpp>
#endif
