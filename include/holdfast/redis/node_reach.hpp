// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/redis/commands.hpp>

#include <chrono>
#include <cstdint>
#include <string_view>
#include <system_error>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// Whether a command can be sent to the node now.
struct node_reach {
    std::error_code why_not{};  ///< no connection can be made, or none is made for this
    bool undecided = false;     ///< its vote depends on what other nodes will say
};

/// What a node said about itself over a new connection, as far as commands depend on it; see `eligibility`. And what
/// the record of a holder says there.
struct node_facts {
    std::uint64_t floor = 1;
    std::chrono::milliseconds fence_lifetime = shortest_fence_lifetime;
    std::string_view holder{};                                ///< kept by the transport; empty: no record is kept
    boot_clock::duration took = boot_clock::duration::max();  ///< its greeting
};

}  // namespace holdfast::redis
