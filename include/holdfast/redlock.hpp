// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/holdfast.hpp>
#include <holdfast/lock/basic_mutex.hpp>
#include <holdfast/redis/client_options.hpp>
#include <holdfast/redis/fleet.hpp>
#include <holdfast/redlock/masters_options.hpp>

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::redlock {

/// Independent Redis masters, a majority of which grants a lock: not replicas of each other, not the nodes of one cluster. Best an odd
/// number, typically five: an even number is allowed but survives no more failures than one less. Thread-safe; shared by any number of
/// locks, which may outlive it. Connects when it is first needed.
class masters {
public:
    /// Effects: prepares for the servers at `urls`, see `redis::parse_url`; no I/O.
    /// Throws: `error` (`misconfigured`): the set is empty or one is there twice, a URL does not parse, an option cannot be used.
    masters(std::initializer_list<std::string_view> urls, masters_options options = {}) : masters{parse(urls), std::move(options)} {}
    explicit masters(std::vector<std::string> const& urls, masters_options options = {}) : masters{parse(urls), std::move(options)} {}

    explicit masters(std::vector<redis::endpoint> servers, masters_options options = {})
    {
        check_masters(servers);
        redis::check_timeouts(options.node_timeout, options.connect_timeout, options.restart_guard, "node_timeout");
        domain_ = std::make_shared<holdfast::detail::domain<redis::fleet>>(
            std::make_shared<redis::fleet>(redis::fleet_options{.servers = std::move(servers),
                                                                .node_timeout = options.node_timeout,
                                                                .connect_timeout = options.connect_timeout,
                                                                .key_prefix = std::move(options.key_prefix),
                                                                .restart_guard = options.restart_guard}));
    }

private:
    friend class mutex;

    template <class Urls>
    static std::vector<redis::endpoint> parse(Urls const& urls)
    {
        std::vector<redis::endpoint> servers;
        for (std::string_view const url : urls) servers.push_back(redis::parse_url(url));
        return servers;
    }

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

static_assert(Lock<mutex>);

}  // namespace holdfast::redlock
