// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/quorum/node_group.hpp>
#include <holdfast/quorum/node_set.hpp>
#include <holdfast/quorum/place_in_line.hpp>

#include <cstdint>
#include <optional>
#include <system_error>

namespace holdfast::inline HOLDFAST_ABI::quorum {

struct acquire_settings {
    node_group nodes{};
    acquire_request request{};
    std::uint64_t seed = 0;                  ///< for the jitter
    int patience = place_in_line::patience;  ///< in a queue, the longest sleep is this many times `retry.most`
};

/// The result of an acquire. `error` is none, `timed_out`, `operation_canceled`, `unavailable`, or what the node
/// reported that `node` names: a permanent error; in an outage, one that may pass.
struct acquire_outcome {
    std::error_code error{};
    boot_clock::time_point valid_until{};
    std::uint64_t fence = 0;  ///< the first of the batch
    unsigned node = max_nodes;
    boot_clock::time_point held_until{};  ///< with `timed_out`: see `failure::held_until`
};

/// What the driver must do, in this order.
struct acquire_step {
    node_set give_up{};      ///< the answers of these nodes are overdue
    node_set roll_back{};    ///< send release for the present token; its answer does not matter
    bool stays = false;      ///< with it, get in line again
    node_set refused{};      ///< they have certainly refused the present token, and it is not used again
    bool new_token = false;  ///< draw a fresh token for what follows
    node_set ask{};          ///< send acquire for the present token
    node_set confirm{};      ///< send confirm of `fence()`
    node_set doubt{};        ///< look at their clocks again
    bool watch = false;      ///< ask the nodes to report releases from now on
    std::optional<acquire_outcome> done{};
};

}  // namespace holdfast::quorum
