// SPDX-License-Identifier: MIT
//
// The stores for which the tests in this folder are instantiated: `one` and `other` are two clients that share nothing
// but the store.
#pragma once

#include "support/eventually.hpp"
#include "support/redis_server.hpp"

#include <holdfast/memory.hpp>
#include <holdfast/redis.hpp>

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

namespace holdfast::test {

struct memory_locks {
    std::optional<memory::store> one{std::in_place};
    std::optional<memory::store> other = one->another_client();
};

/// The server and this process may be slow.
struct redis_locks {
    static constexpr std::chrono::milliseconds for_answers{5'000};
    static constexpr std::chrono::milliseconds for_connections{60'000};

    [[nodiscard]] redis::client another() const
    {
        return redis::client{server.url(), {.operation_timeout = for_answers, .connect_timeout = for_connections}};
    }

    redis_server server;
    std::optional<redis::client> one{another()};
    std::optional<redis::client> other{another()};
};

/// Returns: whether `name` comes free within a while.
template <class Locks>
[[nodiscard]] bool comes_free(Locks& locks, std::string_view name)
{
    mutex probe{*locks.other, name, {.ttl = std::chrono::minutes{5}}};
    return probe.try_lock_for(std::chrono::minutes{1});
}

/// Returns: the error code of the call that `begin` begins with a handler. (ThreadSanitizer does not see what orders
/// the threads that share an exception of a future: that is in the standard library.)
template <class Code = std::error_code, class Begin>
[[nodiscard]] Code code_of(Begin&& begin)
{
    auto const said = std::make_shared<std::promise<Code>>();
    std::forward<Begin>(begin)([said](Code ec, auto&&...) { said->set_value(ec); });
    return said->get_future().get();
}

}  // namespace holdfast::test

#define HOLDFAST_LOCKS holdfast::test::memory_locks, holdfast::test::redis_locks
