// SPDX-License-Identifier: MIT
#pragma once

// What is behind <holdfast/redis.hpp>. Nobody has to include it, save one file of a program that defines HOLDFAST_SEPARATE_COMPILATION
// and uses no <holdfast/redlock.hpp>.

#include <holdfast/core/language.hpp>

#include <holdfast/core/linkage.hpp>
#include <holdfast/core/lock.hpp>
#include <holdfast/lock/basic_mutex_members.hpp>
#include <holdfast/lock/domain.hpp>
#include <holdfast/redis.hpp>
#include <holdfast/redis/client_options.hpp>
#include <holdfast/redis/endpoint.hpp>
#include <holdfast/redis/fleet.hpp>
#include <holdfast/redis/secured.hpp>
#include <holdfast/redis/server_status.hpp>

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::redis {

static_assert(Lock<mutex>);

namespace detail {

inline client_options with_server(client_options options, endpoint server)
{
    options.server = std::move(server);
    return options;
}

}  // namespace detail

HOLDFAST_INLINE client::client(std::string_view url, client_options options)
    : client{detail::with_server(std::move(options), parse_url(url))}
{
}

HOLDFAST_INLINE client::client(client_options options)
{
    check_endpoint(options.server, "client_options, server, ");
    check_timeouts(options.operation_timeout, options.connect_timeout, options.restart_guard, "operation_timeout");
    check_connections(options.connections);
    std::vector<endpoint> servers{std::move(options.server)};
    auto tls = secured(servers, options.tls);
    domain_ = std::make_shared<holdfast::detail::domain<fleet>>(std::make_shared<fleet>(fleet_options{.servers = std::move(servers),
                                                                                    .tls = std::move(tls),
                                                                                    .node_timeout = options.operation_timeout,
                                                                                    .connect_timeout = options.connect_timeout,
                                                                                    .key_prefix = std::move(options.key_prefix),
                                                                                    .restart_guard = options.restart_guard,
                                                                                    .connections = options.connections,
                                                                                    .subscribe = options.subscribe}));
}

HOLDFAST_INLINE server_status client::status() const
{
    return domain_->in_child() ? server_status{} : std::move(domain_->backend().status().front());
}

}  // namespace holdfast::redis

#ifdef HOLDFAST_SEPARATE_COMPILATION
template class holdfast::basic_mutex<holdfast::redis::fleet>;
#endif
