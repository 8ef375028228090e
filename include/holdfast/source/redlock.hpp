// SPDX-License-Identifier: MIT
#pragma once

// What is behind <holdfast/redlock.hpp>, and <holdfast/redis.hpp> with it. Nobody has to include it, save one file of a program that
// defines HOLDFAST_SEPARATE_COMPILATION.

#include <holdfast/core/language.hpp>

#include <holdfast/core/linkage.hpp>
#include <holdfast/core/lock.hpp>
#include <holdfast/lock/domain.hpp>
#include <holdfast/redis/client_options.hpp>
#include <holdfast/redis/endpoint.hpp>
#include <holdfast/redis/fleet.hpp>
#include <holdfast/redis/secured.hpp>
#include <holdfast/redis/server_status.hpp>
#include <holdfast/redlock.hpp>
#include <holdfast/redlock/masters_options.hpp>
#include <holdfast/source/redis.hpp>

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::redlock {

static_assert(Lock<mutex>);

namespace detail {

template <class Urls>
std::vector<redis::endpoint> parse(Urls const& urls)
{
    std::vector<redis::endpoint> servers;
    servers.reserve(urls.size());
    for (redis::url const one : urls) servers.push_back(redis::parse_url(one.text()));
    return servers;
}

}  // namespace detail

HOLDFAST_INLINE masters::masters(std::initializer_list<redis::url> urls, masters_options options)
    : masters{detail::parse(urls), std::move(options)}
{
}

HOLDFAST_INLINE masters::masters(std::vector<std::string> const& urls, masters_options options)
    : masters{detail::parse(urls), std::move(options)}
{
}

HOLDFAST_INLINE masters::masters(std::vector<redis::endpoint> servers, masters_options options)
{
    check_masters(servers);
    redis::check_timeouts(options.node_timeout, options.connect_timeout, options.restart_guard, "node_timeout");
    auto tls = redis::secured(servers, options.tls);
    domain_ = std::make_shared<holdfast::detail::domain<redis::fleet>>(
        std::make_shared<redis::fleet>(redis::fleet_options{.servers = std::move(servers),
                                                            .tls = std::move(tls),
                                                            .node_timeout = options.node_timeout,
                                                            .timeout_option = "node_timeout",
                                                            .connect_timeout = options.connect_timeout,
                                                            .key_prefix = std::move(options.key_prefix),
                                                            .restart_guard = options.restart_guard,
                                                            .connections = 1,
                                                            .subscribe = options.subscribe}));
}

HOLDFAST_INLINE std::vector<redis::server_status> masters::status() const
{
    return domain_->in_child() ? std::vector<redis::server_status>{} : domain_->backend().status();
}

}  // namespace holdfast::redlock
