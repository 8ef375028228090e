// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/zookeeper/node_name.hpp>

#include <cstdint>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// Whether clients that wait for a lock have places in a queue.
enum class queueing : std::uint8_t {
    /// each has an ephemeral, sequential node below the lock's: first come, first served; a release wakes one
    sequential,
    none,  ///< one ephemeral node at the lock's path: made or refused; a release wakes all, and one of them is first
};

/// The kind of a lock's nodes: the same for all clients that share it. `mutex m{zk, "/orders", {}, {.naming =
/// naming::kazoo}};`
struct node_options {
    zookeeper::queueing queueing = zookeeper::queueing::sequential;  ///< whether waiters stand in a queue
    zookeeper::naming naming = zookeeper::naming::curator;           ///< of the nodes in the queue
};

}  // namespace holdfast::zookeeper
