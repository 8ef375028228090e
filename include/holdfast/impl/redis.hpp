// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/impl/urls.hpp>
#include <holdfast/lock/client_context.hpp>
#include <holdfast/redis/client_options.hpp>
#include <holdfast/redis/client_pool.hpp>
#include <holdfast/redis/endpoint.hpp>
#include <holdfast/redis/layout.hpp>
#include <holdfast/redis/opened.hpp>
#include <holdfast/redis/secured.hpp>
#include <holdfast/redis/socket_transport.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// Returns: the implementation of `redis::client` and `redlock::masters`.
[[nodiscard]] inline opened open_pool(pool_options options)
{
    auto pool = std::make_shared<client_pool>(std::move(options));
    auto locks = std::make_shared<holdfast::detail::client_context>(pool);
    return {std::move(locks), std::move(pool)};
}

/// Returns: the implementation of a `client`. Throws: `error` (`misconfigured`).
[[nodiscard]] HOLDFAST_INLINE opened open_client(client_options options)
{
    check_endpoint(options.server, "client_options, server, ");
    check_timeouts(options.operation_timeout, options.connect_timeout, options.restart_guard, "operation_timeout");
    check_connections(options.connections);
    auto holder = holder_record(options.label);
    bool const named = options.name_holder && options.layout != layout::redisson;
    std::vector<endpoint> servers{std::move(options.server)};
    auto tls = secured(servers, options.tls);
    return open_pool({.servers = std::move(servers),
                      .tls = std::move(tls),
                      .node_timeout = options.operation_timeout,
                      .connect_timeout = options.connect_timeout,
                      .key_prefix = std::move(options.key_prefix),
                      .layout = options.layout,
                      .restart_guard = options.restart_guard,
                      .connections = options.connections,
                      .subscribe = options.subscribe,
                      .holder = named ? std::move(holder) : std::string{}});
}

[[nodiscard]] HOLDFAST_INLINE opened open_client(std::string_view url, client_options options)
{
    options.server = parse_url(url);
    return open_client(std::move(options));
}

}  // namespace holdfast::redis

namespace holdfast::inline HOLDFAST_ABI::detail {

/// Returns: the store of a URL, see `redis::parse_url`.
// NOLINTNEXTLINE(misc-definitions-in-headers): weak
[[gnu::weak]] store open_redis_url(std::string_view url) { return store{redis::open_client(url, {}).locks}; }

}  // namespace holdfast::detail
