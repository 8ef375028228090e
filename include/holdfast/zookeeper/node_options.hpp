// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/zookeeper/node_name.hpp>

#include <cstdint>

namespace holdfast::zookeeper {

/// Whether those who wait for a lock have places in a queue.
enum class queueing : std::uint8_t {
    sequential,  ///< an ephemeral, sequential node below the lock's for each: first come, first served; a release wakes one
    none,        ///< one ephemeral node at the lock's name: made or refused; a release wakes all, and one of them is the first
};

/// What the nodes of a lock are like: the same for all that share it. `mutex m{zk, "/orders", {}, {.naming = naming::kazoo}};`
struct node_options {
    zookeeper::queueing queueing = zookeeper::queueing::sequential;
    zookeeper::naming naming = zookeeper::naming::curator;  ///< of the nodes in the queue
};

}  // namespace holdfast::zookeeper
