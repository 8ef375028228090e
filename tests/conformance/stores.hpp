// SPDX-License-Identifier: MIT
//
// The stores for which the suite in this folder is instantiated. A store has
//
// - `one` and `other`, two clients that share nothing but the store, and `another()`, which makes a third;
// - `break_lock(name)`, which ends a lease behind its holder's back;
// - `ttl`, about the shortest that it allows: what waits for the end of a lease waits that long;
// - `crosses_processes`, whether forked processes see the same locks.
#pragma once

#include "support/redis_server.hpp"

#include <holdfast/memory.hpp>
#include <holdfast/redis.hpp>
#include <holdfast/redlock.hpp>

#include <chrono>
#include <string>

namespace holdfast::test {

struct memory_store {
    using client = memory::store;
    using mutex = memory::mutex;
    static constexpr std::chrono::milliseconds ttl{600};
    static constexpr bool crosses_processes = false;

    client one;
    client other = one.another_client();

    [[nodiscard]] client another() const { return one.another_client(); }
    void break_lock(std::string const& name) { one.erase(name); }
};

struct redis_store {
    using client = redis::client;
    using mutex = redis::mutex;
    static constexpr std::chrono::milliseconds ttl{1000};
    static constexpr bool crosses_processes = true;

    redis_server server;
    client one = another();
    client other = another();

    [[nodiscard]] client another() const { return client{server.url()}; }
    void break_lock(std::string const& name) { server.command({"DEL", name}); }
};

struct redlock_store {
    using client = redlock::masters;
    using mutex = redlock::mutex;
    static constexpr std::chrono::milliseconds ttl{1000};
    static constexpr bool crosses_processes = true;

    redis_fleet servers{5};
    client one = another();
    client other = another();

    [[nodiscard]] client another() const
    {
        using std::chrono_literals::operator""ms;
        return client{servers.urls(), {.node_timeout = 500ms, .restart_guard = 0ms}};
    }
    void break_lock(std::string const& name) { servers.command({"DEL", name}); }
};

/// Returns: options with the shortest ttl of `Store`.
template <class Store>
[[nodiscard]] lock_options brief()
{
    return {.ttl = Store::ttl};
}

/// Returns: the same without renewal: the lease is lost after the ttl.
template <class Store>
[[nodiscard]] lock_options not_renewed()
{
    return {.ttl = Store::ttl, .renew = false};
}

/// Returns: whether a new client could take `name` just now. It gives it back at once.
template <class Store>
[[nodiscard]] bool is_free(Store& store, std::string const& name)
{
    auto client = store.another();
    typename Store::mutex probe{client, name};
    return probe.try_lock();
}

}  // namespace holdfast::test

#define HOLDFAST_STORES holdfast::test::memory_store, holdfast::test::redis_store, holdfast::test::redlock_store
