// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/backend.hpp>
#include <holdfast/redis/acquire_operation.hpp>
#include <holdfast/redis/ballot_operation.hpp>
#include <holdfast/redis/key_cache.hpp>
#include <holdfast/redis/socket_transport.hpp>

#include <chrono>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::redis {

/// The servers of a lock as a `Backend`.
class fleet final : public socket_transport {
public:
    using key = shared_keys;
    using acquire_operation = redis::acquire_operation<socket_transport>;
    using extend_operation = redis::extend_operation<socket_transport>;
    using release_operation = redis::release_operation<socket_transport>;

    using socket_transport::socket_transport;

    [[nodiscard]] key make_key(std::string_view name) const { return used_.get(key_prefix() + std::string{name}); }

    void check(std::string_view name, lock_options const& options)
    {
        check_options(name, options, node_timeout());
        if ((key_prefix() + std::string{name}).starts_with(lock_keys::reserved_prefix))
            throw error{holdfast::errc::misconfigured,
                        "lock " + holdfast::quoted(name) + ": names that begin with \"holdfast:\" are reserved for what is kept beside a lock"};
        cover(options.ttl);
        if (!covers(options.ttl))
            throw error{holdfast::errc::misconfigured, "lock " + holdfast::quoted(name) + ": ttl is " + std::to_string(options.ttl.count()) +
                                                           " ms, longer than the restart_guard: a server that forgets it would grant it again"};
    }

    /// Returns: whether a lease may be extended to `ttl`: the servers have the time to answer, and the restart guard covers it.
    [[nodiscard]] bool may_lease(std::chrono::milliseconds ttl) { return ttl >= 2 * node_timeout() && covers(ttl); }

private:
    mutable key_cache used_{size()};
};

static_assert(Backend<fleet>);

}  // namespace holdfast::redis
