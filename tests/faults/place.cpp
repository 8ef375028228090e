// SPDX-License-Identifier: MIT
#include "place.hpp"

#include <support/locks.hpp>

#include <stdexcept>
#include <utility>

namespace holdfast::faults {
lock_options place::options() const
{
    return {.ttl = ttl,
            .max_local_handoffs = max_local_handoffs,
            .fair = fair,
            .deferred_release = deferred_release,
            .retry = {.most = std::chrono::hours{1}}};
}

holdfast::store connect(place const& where)
{
    switch (where.what) {
    case place::store::redis: {
        redis::client_options options{.operation_timeout = where.operation_timeout,
                                      .restart_guard = where.restart_guard};
        options.connect_timeout = where.connect_timeout.value_or(options.connect_timeout);
        return redis::client{where.servers.at(0), std::move(options)};
    }
    case place::store::redlock: {
        redlock::masters_options options{.node_timeout = where.operation_timeout, .restart_guard = where.restart_guard};
        options.connect_timeout = where.connect_timeout.value_or(options.connect_timeout);
        return redlock::masters{where.servers, std::move(options)};
    }
    case place::store::zookeeper:
#ifdef HOLDFAST_TEST_ZOOKEEPER
        return zookeeper::session{where.servers.at(0),
                                  {.session_timeout = where.ttl, .operation_timeout = where.operation_timeout}};
#endif
        break;
    }
    throw std::runtime_error{"this program was built without that store"};
}

}  // namespace holdfast::faults
