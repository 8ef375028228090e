// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <system_error>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// What a client knows of one of its servers, from its connections: nothing is asked. `std::cout << status.describe()
/// << '\n';`
struct server_status {
    /// Its URL, without user and password.
    std::string server{};

    /// Whether the client has tried to reach it. False: no lock has needed it yet, and the other members mean nothing.
    bool asked = false;

    /// Whether there is a connection to it now, over which it has answered.
    bool reached = false;

    /// Whether its grants count now.
    bool votes = false;

    /// Why they do not count, if it was asked: a code of `redis::errc`, or of TLS. `restarted_recently`,
    /// `clock_out_of_line`, `clock_not_compared`, `read_only` (a replica), `same_server` (another of these servers is
    /// the same), `moved` (a node of a cluster), `authentication_failed`, …
    std::error_code why_not{};

    /// More about `why_not`: what the server or the system said, or which server is the same one.
    std::string detail{};

    /// For `restarted_recently`: how long until its grants count.
    std::chrono::milliseconds guarded_for{0};

    /// The error that it last answered, or why it could not be reached; no error if it has given a proper answer since.
    std::error_code last_error{};

    /// How far its clock was ahead of this machine's when the connection was made, and by how much that may be wrong.
    /// Empty if it was not asked.
    std::optional<std::chrono::microseconds> clock_ahead{};
    /// By how much `clock_ahead` may be wrong.
    std::chrono::microseconds clock_doubt{0};

    /// From the last request to its answer, as this client saw it.
    std::optional<std::chrono::microseconds> round_trip{};

    /// Whether it evicts keys when its memory is full (`maxmemory-policy` is not `noeviction`): a lock may be forgotten
    /// while it is held.
    bool may_evict = false;

    /// Why its reports of releases do not come, if that lasts: waiters use the clock instead. It says nothing about its
    /// vote.
    std::error_code subscription_error{};

    /// Returns: all of this in one line, for people.
    [[nodiscard]] std::string describe() const
    {
        auto text = server + ": ";
        if (!asked) return text + "not asked yet";
        text += votes ? "votes" : "no vote";
        if (!votes) text += " (" + why_not.message() + (detail.empty() ? "" : "; " + detail) + ")";
        if (!reached) text += ", not connected";
        std::string seen;
        auto const ms = [](std::chrono::microseconds d) {
            return std::to_string(d.count() / 1000) + "." + std::to_string(d.count() / 100 % 10) + " ms";
        };
        if (round_trip) seen += ", answers in " + ms(*round_trip);
        if (clock_ahead)
            seen += ", clock " + ms(std::chrono::abs(*clock_ahead)) +
                    (clock_ahead->count() < 0 ? " behind" : " ahead") + ", give or take " + ms(clock_doubt);
        if (may_evict) seen += ", may evict keys";
        if (!reached && !seen.empty()) seen.replace(0, 1, "; when last connected:");
        text += seen;
        if (subscription_error) text += ", its subscription to releases fails (" + subscription_error.message() + ")";
        return text;
    }
};

}  // namespace holdfast::redis
