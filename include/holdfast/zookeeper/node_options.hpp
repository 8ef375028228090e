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

/// How the permits of a `semaphore` are kept.
enum class permits : std::uint8_t {
    slots,  ///< each is a lock: `name#0`, `name#1`, and so on
    /// shared with Curator's InterProcessSemaphoreV2: each is a node below `name/leases`, of which there are no more
    /// than `max`; a client that wants one first takes the lock `name/locks`
    curator,
    /// shared with kazoo's Semaphore: each is a node below `name`, whose data say `max`; a client that wants one first
    /// takes the lock `name-__lock__`, with kazoo's names. A client that says another `max` is told when it has that
    /// lock: `misconfigured`
    kazoo,
};

/// The kind of a lock's nodes: the same for all clients that share it. `mutex m{zk, "/orders", {}, {.naming =
/// naming::kazoo}};`
struct node_options {
    zookeeper::queueing queueing = zookeeper::queueing::sequential;  ///< whether waiters stand in a queue
    zookeeper::naming naming = zookeeper::naming::curator;           ///< of the nodes in the queue
    zookeeper::permits permits = zookeeper::permits::slots;          ///< of a semaphore; no effect on other locks
};

}  // namespace holdfast::zookeeper
