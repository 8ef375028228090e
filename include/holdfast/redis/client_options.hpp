// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/holder_text.hpp>
#include <holdfast/core/lock_holder.hpp>
#include <holdfast/core/options.hpp>
#include <holdfast/io/tls_options.hpp>
#include <holdfast/redis/endpoint.hpp>
#include <holdfast/redis/layout.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// How to talk to one Redis server. An aggregate: `client redis{{.server = {.host = "10.0.0.1"}, .operation_timeout =
/// 200ms}};`
struct client_options {
    /// The server; see `endpoint`. A URL that is given to the client replaces it.
    endpoint server{};

    /// How long the server may take to answer. Short: a slow moment of the server or the network fails an operation,
    /// and its connection is not used again. Long: calls take that long to find out that the server is gone. No ttl can
    /// be less than twice this.
    std::chrono::milliseconds operation_timeout{500};

    /// How long each step of making a connection may take: name, connection, TLS, authentication. Short: a distant
    /// server is never reached.
    std::chrono::milliseconds connect_timeout{2000};

    /// The most connections for commands, 1 to 64; each is made when it is first needed. Each lock uses one of them.
    /// While threads wait for locks, there are as many again for news of releases. Few: threads with different locks
    /// wait for each other. Many: more descriptors, here and at the server, and fewer requests that are sent together.
    unsigned connections{4};

    /// Whether waiting clients are told of releases, over a connection that subscribes to them. False, for servers that
    /// must not have subscribers: a waiter asks again when the holder's time is over, and at least every `retry.most`
    /// or half a second, whichever is less. Then a hand-over takes that long, and a process whose own threads want the
    /// lock does not know that others wait.
    bool subscribe{true};

    /// Put before every lock's name to make its key. Clients that exclude each other need the same one.
    std::string key_prefix{};

    /// How the locks are kept: the same for all clients that exclude each other. `layout::redisson` shares them with
    /// Redisson.
    redis::layout layout{redis::layout::string};

    /// A server that was started less than this long ago may have forgotten what it granted, and has no vote. 0: no
    /// guard; a single server that restarts without its data may then grant a lock that is still held. Otherwise it
    /// must be the same for every client, and at least the longest ttl of any: a longer `ttl` or `extend` is refused.
    std::chrono::milliseconds restart_guard{0};

    /// Whether the server keeps, beside each lock that this client holds, who that is: its label, its host, its
    /// process, since when. `holder()` of any client shows it, and `request_release()` reaches the client. False: they
    /// show and reach nothing of it, and each lock costs the server about a sixth less of its time. It needs the right
    /// to the keys `holdfast:holder:`; if that is missing, locks work without it. Redisson's layout has no
    /// place for it.
    bool name_holder{true};

    /// What that says, for people; empty: the name of the program. 4,096 bytes at most.
    std::string label{};

    /// For a server whose URL begins with `rediss://`. Needs <holdfast/tls.hpp> somewhere in the program.
    tls::options tls{};
};

/// Throws: `error` (`misconfigured`) naming the field that cannot be used.
inline void check_timeouts(std::chrono::milliseconds operation, std::chrono::milliseconds connect,
                           std::chrono::milliseconds guard, char const* operation_name)
{
    auto const require = [](bool good, std::string const& what) {
        if (!good) throw error{holdfast::errc::misconfigured, what};
    };
    require(operation.count() > 0,
            std::string{operation_name} + " is " + std::to_string(operation.count()) + " ms; it must be positive");
    require(connect.count() > 0, "connect_timeout is " + std::to_string(connect.count()) + " ms; it must be positive");
    require(guard.count() >= 0, "restart_guard must not be negative; 0 switches it off");
    require(std::max({operation, connect, guard}) <= longest_ttl,
            std::string{operation_name} + ", connect_timeout and restart_guard are at most a day");
}

/// Returns: what a record of the holder says of this client.
/// Throws: `error` (`misconfigured`) if `label` cannot be used.
[[nodiscard]] inline std::string holder_record(std::string const& label)
{
    check_label(label);
    return holdfast::detail::holder_text(label.empty() ? ::program_invocation_short_name : label);
}

/// Throws: `error` (`misconfigured`) if that many connections are not allowed.
inline void check_connections(unsigned count)
{
    constexpr unsigned most = 64;
    if (count == 0 || count > most)
        throw error{holdfast::errc::misconfigured,
                    "connections is " + std::to_string(count) + "; it must be from 1 to " + std::to_string(most)};
}

}  // namespace holdfast::redis
