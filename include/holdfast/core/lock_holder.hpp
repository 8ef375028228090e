// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/error.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI {

/// A client that holds a lock or waits for it, as its store knows it. What the store does not know is empty.
struct lock_contender {
    std::string label{};   ///< as the client's options name it
    std::string host{};    ///< the name of its machine
    std::int64_t pid = 0;  ///< of its process; 0: not known

    /// Of the first holder under the lease: another thread of its process may hold the lock by now, with a token that
    /// is greater by a few. 0: not known.
    std::uint64_t fencing_token = 0;

    /// Since when it holds the lock, by this machine's clock. On ZooKeeper, since when it has been in line for it, by
    /// the clock of a server.
    std::optional<std::chrono::system_clock::time_point> since{};
};

/// The client that holds a lock, and what the store knows of its lease.
struct lock_holder : lock_contender {
    /// How long the store keeps the lock if the holder does not renew it; nothing: not known, or for ever.
    std::optional<std::chrono::milliseconds> remaining{};

    /// About how many clients wait; those that have died count until their turn comes. Nothing: not known.
    std::optional<std::size_t> waiting{};

    bool release_requested = false;  ///< it was asked to release the lock, or will be told so with its next renewal
};

/// What a store is asked for: who has a lock, or also who waits for it, which may cost a request for each of them.
enum class report_of : std::uint8_t { holder, contenders };

/// What a store says of one lock.
struct lock_report {
    std::optional<lock_holder> holder{};  ///< nothing: it is free
    /// In the order in which they get it, if the store knows them, and was asked for them.
    std::vector<lock_contender> waiters{};
    bool knows_waiters = false;  ///< whether it does

    /// Tells the lease of the holder from every other one, also of other locks; the same for all clients. That of a
    /// client of Redisson: its thread. Nothing about its owner token can be learnt from it. Empty: there is no holder,
    /// or the store does not tell them apart.
    std::string lease{};
};

/// The longest label of a client, in bytes.
inline constexpr std::size_t max_client_label = 4'096;

/// Throws: `error` (`misconfigured`) if `label` is longer.
inline void check_label(std::string_view label)
{
    if (label.size() > max_client_label)
        throw error{errc::misconfigured, "label has " + std::to_string(label.size()) + " bytes; at most " +
                                             std::to_string(max_client_label) + " are allowed, as each lock has it"};
}

}  // namespace holdfast
