// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/impl/redis.hpp>
#include <holdfast/impl/urls.hpp>
#include <holdfast/redis/endpoint.hpp>
#include <holdfast/redis/opened.hpp>
#include <holdfast/redis/secured.hpp>
#include <holdfast/redlock/masters_options.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::redlock {

/// Returns: the implementation of `masters`. Throws: `error` (`misconfigured`).
[[nodiscard]] HOLDFAST_INLINE redis::opened open_masters(std::vector<redis::endpoint> servers, masters_options options)
{
    check_masters(servers);
    redis::check_timeouts(options.node_timeout, options.connect_timeout, options.restart_guard, "node_timeout");
    auto holder = redis::holder_record(options.label);
    auto tls = redis::secured(servers, options.tls);
    return redis::open_pool({.servers = std::move(servers),
                             .tls = std::move(tls),
                             .node_timeout = options.node_timeout,
                             .timeout_option = "node_timeout",
                             .connect_timeout = options.connect_timeout,
                             .key_prefix = std::move(options.key_prefix),
                             .restart_guard = options.restart_guard,
                             .connections = 1,
                             .subscribe = options.subscribe,
                             .holder = options.name_holder ? std::move(holder) : std::string{}});
}

}  // namespace holdfast::redlock

namespace holdfast::inline HOLDFAST_ABI::detail {

/// Returns: the store of a URL, `redlock+redis://A,redis://B,C`.
// NOLINTNEXTLINE(misc-definitions-in-headers): weak
[[gnu::weak]] store open_redlock_url(std::string_view url)
{
    url.remove_prefix(std::string_view{"redlock+"}.size());
    auto const scheme = std::string{url.substr(0, url.find("://") + 3)};
    std::vector<std::string> urls;
    for (bool more = true; more;) {
        auto const end = url.find(',');
        auto one = std::string{url.substr(0, end)};
        if (one.find("://") == std::string::npos) one.insert(0, scheme);
        urls.push_back(std::move(one));
        more = end != std::string_view::npos;
        if (more) url.remove_prefix(end + 1);
    }
    return store{redlock::open_masters(redis::parse_urls(urls, redis::detail::url_origin::cut_out), {}).locks};
}

}  // namespace holdfast::detail
