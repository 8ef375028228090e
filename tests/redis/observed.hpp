// SPDX-License-Identifier: MIT
//
// What a test sees of a server behind the back of a client.
#pragma once

#include "support/code_of.hpp"
#include "support/redis_server.hpp"

#include <holdfast/redis/client_options.hpp>

#include <charconv>
#include <chrono>
#include <cstdint>
#include <string>

namespace holdfast::test {

/// Returns: options of a client that waits for a busy machine, and takes no slow answer for a lost one; for locks with
/// a ttl of at least 20 s.
inline redis::client_options unhurried()
{
    return {.operation_timeout = std::chrono::seconds{10}, .connect_timeout = std::chrono::minutes{1}};
}

/// Returns: the same, of a client that leaves no records of itself.
inline redis::client_options unnamed()
{
    auto options = unhurried();
    options.name_holder = false;
    return options;
}

inline bool exists(redis_server& server, std::string const& key)
{
    return server.command({"EXISTS", key}).integer == 1;
}

/// Returns: the number after `field` in what `INFO` has answered; 0 if there is none.
inline long number_after(std::string const& field, std::string const& info)
{
    auto const at = info.find(field);
    long n = 0;
    if (at != std::string::npos) std::from_chars(info.data() + at + field.size(), info.data() + info.size(), n);
    return n;
}

/// Returns: how often the server has run `command` since it was started or `CONFIG RESETSTAT`.
inline long calls(redis_server& server, std::string const& command)
{
    return number_after("cmdstat_" + command + ":calls=", server.command({"INFO", "commandstats"}).text);
}

/// Returns: how often the server has read from a connection since then, without what `INFO` itself took.
inline long reads(redis_server& server)
{
    auto const info = server.command({"INFO", "everything"}).text;
    return number_after("total_reads_processed:", info) - number_after("cmdstat_info:calls=", info);
}

/// Returns: how many attempts to take a lock, releases and renewals the server has seen.
inline long lock_requests(redis_server& server) { return calls(server, "evalsha") + calls(server, "eval"); }

/// Effects: locks and unlocks `m`. Returns: the fencing token.
template <class M>
std::uint64_t take_and_free(M& m)
{
    m.lock();
    auto const token = m.lease().fencing_token();
    m.unlock();
    return token;
}

inline long subscriptions(redis_server& server)
{
    return static_cast<long>(server.command({"PUBSUB", "CHANNELS"}).elements.size());
}

/// Returns: how many clients are in the queue of a lock.
inline long waiters(redis_server& server, std::string const& lock = "orders")
{
    return static_cast<long>(server.command({"ZCARD", "holdfast:queue:{" + lock + "}"}).integer);
}

}  // namespace holdfast::test
