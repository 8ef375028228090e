// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>

#include <chrono>
#include <system_error>

namespace holdfast::inline HOLDFAST_ABI::quorum {

/// The nodes that are asked, numbered from 0 on.
struct node_group {
    unsigned size = 1;
    std::chrono::milliseconds timeout{};  ///< how long a node has to answer
    /// How much longer, as long as no majority has answered: connections are still made.
    std::chrono::milliseconds connecting{};
    std::error_code overdue{};  ///< the error of a node that has not answered by then
};

}  // namespace holdfast::quorum
