// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/io/tls_options.hpp>
#include <holdfast/quorum/node_set.hpp>
#include <holdfast/redis/endpoint.hpp>

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::redlock {

/// How to talk to the masters of a Redlock.
struct masters_options {
    /// How long a master may take to answer. Short: a slow moment of the network costs a vote, and a master that is
    /// farther away never gives one in time. Long: if a minority of the masters and one more do not answer, a round
    /// takes that long. Must be much shorter than every ttl.
    std::chrono::milliseconds node_timeout{50};

    /// How long each step of making a connection may take: name, connection, TLS, authentication. Short: a distant
    /// master is never reached.
    std::chrono::milliseconds connect_timeout{1000};

    /// Whether waiting clients are told of releases, over a connection to each master that subscribes to them. False,
    /// for servers that must not have subscribers: a waiter asks again when the holder's time is over, and at least
    /// every `retry.most` or half a second, whichever is less. Then a hand-over takes that long, and a process whose
    /// own threads want the lock does not know that others wait.
    bool subscribe{true};

    /// Put before every lock's name to make its key. Clients that exclude each other need the same one.
    std::string key_prefix{};

    /// A master that was started less than this long ago may have forgotten what it granted, and has no vote. Nor has
    /// one whose clock differs from the others' by more than half of it. A longer `ttl` or `extend` is refused. If set
    /// by hand, it must be the same for every client of these masters, and at least the longest ttl of any: no server
    /// shows the guard of another client. A client with a shorter one may be granted a lock that is still held, and its
    /// tokens may be less than earlier ones, when masters forget. 0 switches all this off: for masters that never come
    /// back without their data, or to try masters that were just started.
    std::chrono::milliseconds restart_guard{std::chrono::minutes{1}};

    /// Whether each master keeps, beside each lock that this client holds, who that is: its label, its host, its
    /// process, since when. `holder()` of any client shows it, and `request_release()` reaches the client. False: they
    /// show and reach nothing of it, and each lock costs the server about a sixth less of its time. It needs the right
    /// to the keys `holdfast:holder:`; if that is missing, locks work without it.
    bool name_holder{true};

    /// What that says, for people; empty: the name of the program. 4,096 bytes at most.
    std::string label{};

    /// For the masters whose URLs begin with `rediss://`. Needs <holdfast/tls.hpp> somewhere in the program.
    tls::options tls{};
};

/// Throws: `error` (`misconfigured`) if `servers` cannot be the masters of a Redlock: there is none, there are too
/// many, or one is there twice.
inline void check_masters(std::vector<redis::endpoint> const& servers)
{
    if (servers.empty())
        throw error{errc::misconfigured, "the set of masters is empty; name at least one, better five"};
    if (servers.size() > quorum::max_nodes)
        throw error{errc::misconfigured, std::to_string(servers.size()) + " masters are given; at most " +
                                             std::to_string(quorum::max_nodes) + " are allowed"};
    for (auto const& one : servers) redis::check_endpoint(one, "masters, " + one.describe() + ", ");
    for (std::size_t i = 0; i < servers.size(); ++i)
        for (std::size_t j = 0; j < i; ++j)
            if (servers[i].same_server(servers[j]))
                throw error{errc::misconfigured, "masters: " + servers[i].describe() +
                                                     " is there twice; each master must be a server of its own"};
}

}  // namespace holdfast::redlock
