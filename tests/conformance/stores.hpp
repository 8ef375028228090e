// SPDX-License-Identifier: MIT
//
// The stores for which the suite in this folder is instantiated. A store has
//
// - `one` and `other`, two clients that share nothing but the store, and `another(t)`, which makes a third: for leases
//   of a ttl of t or more, without an argument of `lasting`, as the first two. A single attempt of it has half of that
//   time;
// - `named(label)`, which makes one that leaves a record of itself with its locks (memory has no labels);
// - `break_lock(name)`, which ends a lease behind its holder's back;
// - `ttl`, about the shortest that it allows: what waits for the end of a lease waits that long;
// - `lasting`, the ttl of a lease that is expected to last: renewed every third of it, it outlives that a process
//   stands still for ten seconds;
// - `crosses_processes`, whether forked processes see the same locks;
// - `keeps_to_ttl`, whether a lease is as long as is asked for: one that is a session's is not;
// - `any_name`, whether every sequence of bytes is a name;
// - `threads`, how many threads a client has at most, however many locks are held and waited for.
//
// The clients of a Redis server are a user that may do what docs/redis.md says a lock needs and nothing else; what a test
// itself does at a server, the default user does. A ZooKeeper session identifies itself, and its nodes are its own. No
// password, no owner token and no key is in anything that is said to an exception, a hook or a log
// (support/overheard.hpp).
#pragma once

#include "async_mutex.hpp"
#include "support/goes_on.hpp"
#include "support/overheard.hpp"
#include "support/redis_rights.hpp"
#include "support/redis_server.hpp"

#include <holdfast/memory.hpp>
#include <holdfast/redis.hpp>
#include <holdfast/redlock.hpp>

#ifdef HOLDFAST_TEST_TLS
#include "support/certificates.hpp"
#endif
#ifdef HOLDFAST_TEST_ZOOKEEPER
#include "support/zookeeper_server.hpp"
#include "support/zookeeper_tree.hpp"

#include <holdfast/zookeeper.hpp>
#endif

#include <chrono>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::test {

struct memory_store {
    using client = memory::store;
    using mutex = memory::mutex;
    using shared_mutex = memory::shared_mutex;
    using semaphore = memory::semaphore;
    static constexpr std::chrono::milliseconds ttl{600};
    static constexpr std::chrono::milliseconds lasting{20'000};
    static constexpr bool crosses_processes = false;
    static constexpr bool keeps_to_ttl = true;
    static constexpr bool any_name = true;
    static constexpr int threads = 1;

    client one;
    client other = one.another_client();

    [[nodiscard]] client another(std::chrono::milliseconds = lasting) const { return one.another_client(); }
    [[nodiscard]] client named(std::string const&) const { return one.another_client(); }
    void break_lock(std::string const& name) { one.erase(name); }
};

/// The password of the user `app`.
inline constexpr char const* app_password = "canary-of-the-app";

/// The names of locks that the suite has, as patterns.
inline constexpr std::string_view suite_names[]{"order*", "invoices", "counter", "a", "a?b", "b", "c"};

/// Returns: the line of redis.conf for that user: with the names that the suite has, and no right that no lock needs.
inline std::string app_user(std::string_view more = {})
{
    std::string names;
    std::string others{operator_commands};
    for (auto const one : suite_names) {
        names.append(names.empty() ? "" : " ").append(one);
        others.append(" ").append(holder_keys_of(one));
    }
    return least_rights(app_password, names, others.append(" ").append(more));
}

/// Returns: the same for a client of Redisson's layout.
inline std::string redisson_user()
{
    std::string line;
    for (auto const one : suite_names)
        line = line.empty() ? redisson_rights(app_password, one, {})
                            : line + " " + redisson_keys_of(one) + " " + redisson_channels_of(one);
    return line;
}

/// How long a connection may take to be made: it ends nothing but a test that hangs.
inline constexpr std::chrono::milliseconds connect_timeout = std::chrono::minutes{1};

/// Returns: `made`, which has connected for the name `orders` then: that takes a busy machine longer than a test gives
/// a single attempt.
template <class Mutex, class Client>
[[nodiscard]] Client connected(Client made)
{
    Mutex m{made, "orders", {.fencing = false, .unavailable_after = std::chrono::minutes{2}}};
    m.lock();
    m.unlock();
    return made;
}

/// What is the same of every store whose servers are Redis.
struct on_redis {
    static constexpr std::chrono::milliseconds ttl{2000};
    static constexpr std::chrono::milliseconds lasting{20'000};
    static constexpr bool crosses_processes = true;
    static constexpr bool keeps_to_ttl = true;
    static constexpr bool any_name = true;
    static constexpr int threads = 1;
};

/// One Redis with its locks in the layout `How`.
template <redis::layout How>
struct redis_store_in : on_redis {
    using client = redis::client;
    using mutex = redis::mutex;
    using shared_mutex = redis::shared_mutex;
    using semaphore = redis::semaphore;

    redis_server server{{.config = {How == redis::layout::redisson ? redisson_user() : app_user()}}};
    client one = connected<mutex>(another());
    client other = connected<mutex>(another());

    [[nodiscard]] client another(std::chrono::milliseconds least = lasting) const
    {
        return made({.operation_timeout = least / 2});
    }
    [[nodiscard]] client named(std::string const& label) const
    {
        return made({.operation_timeout = lasting / 2, .label = label});
    }
    [[nodiscard]] client unnamed() const { return made({.operation_timeout = lasting / 2, .name_holder = false}); }
    [[nodiscard]] client made(redis::client_options how) const
    {
        how.connect_timeout = connect_timeout;
        how.layout = How;
        return client{server.url("app", app_password), std::move(how)};
    }
    void break_lock(std::string const& name) { server.command({"DEL", name}); }
};

struct redis_store : redis_store_in<redis::layout::string> {};
struct redisson_store : redis_store_in<redis::layout::redisson> {};

#ifdef HOLDFAST_TEST_TLS
struct redis_tls_store : on_redis {
    using client = redis::client;
    using mutex = redis::mutex;
    using shared_mutex = redis::shared_mutex;
    using semaphore = redis::semaphore;

    authority signer;
    identity shown = signer.issue();
    redis_server server{{.config = {app_user()}, .tls = redis_tls{shown.certificate, shown.key, signer.file(), true}}};
    client one = connected<mutex>(another());
    client other = connected<mutex>(another());

    [[nodiscard]] client another(std::chrono::milliseconds least = lasting) const { return secured(least, {}); }
    [[nodiscard]] client named(std::string const& label) const { return secured(lasting, label); }
    [[nodiscard]] client secured(std::chrono::milliseconds least, std::string const& label) const
    {
        return client{
            server.url("app", app_password),
            {.operation_timeout = least / 2,
             .connect_timeout = connect_timeout,
             .label = label,
             .tls = {.ca_file = signer.file(), .certificate_file = shown.certificate, .key_file = shown.key}}};
    }
    void break_lock(std::string const& name) { server.command({"DEL", name}); }
};
#endif

struct redlock_store : on_redis {
    using client = redlock::masters;
    using mutex = redlock::mutex;
    using shared_mutex = redlock::shared_mutex;
    using semaphore = redlock::semaphore;

    redis_fleet servers{5, {.config = {app_user(redlock_commands)}}};
    client one = connected<mutex>(another());
    client other = connected<mutex>(another());

    [[nodiscard]] client another(std::chrono::milliseconds least = lasting) const
    {
        return made({.node_timeout = least / 2});
    }
    [[nodiscard]] client named(std::string const& label) const
    {
        return made({.node_timeout = lasting / 2, .label = label});
    }
    [[nodiscard]] client unnamed() const { return made({.node_timeout = lasting / 2, .name_holder = false}); }
    [[nodiscard]] client made(redlock::masters_options how) const
    {
        how.connect_timeout = connect_timeout;
        how.restart_guard = std::chrono::milliseconds{0};
        return client{servers.urls("app", app_password), std::move(how)};
    }
    void break_lock(std::string const& name) { servers.command({"DEL", name}); }
};

#ifdef HOLDFAST_TEST_ZOOKEEPER
struct zookeeper_store {
    using client = zookeeper::session;
    using mutex = zookeeper::mutex;
    using shared_mutex = zookeeper::shared_mutex;
    using semaphore = zookeeper::semaphore;
    static constexpr std::chrono::milliseconds ttl{3200};
    static constexpr std::chrono::milliseconds lasting{15'000};
    static constexpr bool crosses_processes = true;
    static constexpr bool keeps_to_ttl = false;
    static constexpr bool any_name = false;
    static constexpr int threads = 4;  // two are the C client's

    static constexpr char const* credential = "app:canary-of-the-session";

    zookeeper_server server;
    client one = connected();
    client other = connected();

    [[nodiscard]] client another(std::chrono::milliseconds least = lasting) const { return labelled(least, {}); }
    [[nodiscard]] client named(std::string const& label) const
    {
        auto made = labelled(lasting, label);
        if (!made.connect_for(std::chrono::minutes{2})) throw std::runtime_error{"no session: " + server.log()};
        return made;
    }
    [[nodiscard]] client labelled(std::chrono::milliseconds least, std::string const& label,
                                  std::chrono::milliseconds operation_timeout = std::chrono::minutes{1}) const
    {
        [[maybe_unused]] static bool const heard = [] {
            everything_heard().keep(std::string_view{credential}.substr(4));
            return true;
        }();
        return client{server.address(),
                      {.session_timeout = 2 * least,  // of which a lease is half
                       .operation_timeout = operation_timeout,
                       .auth_scheme = "digest",
                       .auth_credential = credential,
                       .label = label}};
    }
    [[nodiscard]] client connected() const  // a session takes longer to make than some test waits for a lock
    {
        auto made = another();
        if (!made.connect_for(std::chrono::minutes{2})) throw std::runtime_error{"no session: " + server.log()};
        return made;
    }
    void break_lock(std::string const& name)
    {
        // Those that have the lock: the first, and readers beside it. The others wait.
        zookeeper_tree tree{server.address(), credential};
        auto const path = zookeeper::lock_path(name);
        bool first = true;
        for (auto const& node : zookeeper::contenders_among(tree.children(path))) {
            if (!first && node.mode != access::shared) break;
            first = false;
            tree.remove(path + '/' + node.name);
            if (node.mode != access::shared) break;
        }
    }
};
#endif

// The same, by asynchronous calls.

struct async_memory_store : memory_store {
    using mutex = async_mutex<memory::mutex>;
};

struct async_redis_store : redis_store {
    using mutex = async_mutex<redis::mutex>;
};

/// What the background says is heard where a test has no hook of its own.
inline void hear(error const& e) { everything_heard().hear(e.what()); }

/// Returns: options for a lease that is expected to last.
template <class Store>
[[nodiscard]] lock_options renewed()
{
    return {.ttl = Store::lasting, .unavailable_after = std::chrono::minutes{5}, .on_error = hear};
}

/// Returns: options with the shortest ttl of `Store`, for a client that is made for it: for a lease that is expected to
/// end.
template <class Store>
[[nodiscard]] lock_options brief()
{
    return {.ttl = Store::ttl, .unavailable_after = std::chrono::minutes{5}, .on_error = hear};
}

/// Returns: the same without renewal: the lease is lost after the ttl.
template <class Store>
[[nodiscard]] lock_options not_renewed()
{
    return {.ttl = Store::ttl, .renew = false, .unavailable_after = std::chrono::minutes{5}, .on_error = hear};
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

#ifdef HOLDFAST_TEST_ZOOKEEPER
#define HOLDFAST_AND_ZOOKEEPER , holdfast::test::zookeeper_store
#else
#define HOLDFAST_AND_ZOOKEEPER
#endif

#ifdef HOLDFAST_TEST_TLS
#define HOLDFAST_AND_TLS , holdfast::test::redis_tls_store
#else
#define HOLDFAST_AND_TLS
#endif

#define HOLDFAST_ASYNC_STORES holdfast::test::async_memory_store, holdfast::test::async_redis_store
#define HOLDFAST_STORES_WITH_TTL                                                                                       \
    holdfast::test::memory_store, holdfast::test::redis_store HOLDFAST_AND_TLS, holdfast::test::redlock_store,         \
        HOLDFAST_ASYNC_STORES
// Those that have a `shared_mutex`.
#define HOLDFAST_SERVERS_WITH_READERS                                                                                  \
    holdfast::test::redis_store HOLDFAST_AND_TLS, holdfast::test::redlock_store HOLDFAST_AND_ZOOKEEPER
#define HOLDFAST_STORES_WITH_READERS holdfast::test::memory_store, HOLDFAST_SERVERS_WITH_READERS
#define HOLDFAST_SERVERS                                                                                               \
    holdfast::test::redis_store HOLDFAST_AND_TLS, holdfast::test::redlock_store HOLDFAST_AND_ZOOKEEPER
#define HOLDFAST_STORES HOLDFAST_STORES_WITH_TTL HOLDFAST_AND_ZOOKEEPER
#define HOLDFAST_BLOCKING_STORES                                                                                       \
    holdfast::test::memory_store, holdfast::test::redis_store HOLDFAST_AND_TLS,                                        \
        holdfast::test::redlock_store HOLDFAST_AND_ZOOKEEPER
// The same with one Redis in Redisson's layout, whose locks do what the others do but for telling who has them.
#define HOLDFAST_STORES_AND_LAYOUTS HOLDFAST_STORES, holdfast::test::redisson_store
#define HOLDFAST_STORES_AND_LAYOUTS_WITH_READERS HOLDFAST_STORES_WITH_READERS, holdfast::test::redisson_store
#define HOLDFAST_BLOCKING_STORES_AND_LAYOUTS HOLDFAST_BLOCKING_STORES, holdfast::test::redisson_store
