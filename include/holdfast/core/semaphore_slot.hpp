// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace holdfast::inline HOLDFAST_ABI {

/// One slot of a semaphore: a lock, of which a permit is a lease.
struct semaphore_slot {
    std::string_view semaphore;  ///< the name of the semaphore
    std::size_t permits = 1;     ///< how many it has, as this client says
    std::size_t slot = 0;        ///< which of them it is, from 0

    /// Returns: the name of the lock: `jobs#2`.
    [[nodiscard]] std::string lock_name() const
    {
        return std::string{semaphore}.append("#").append(std::to_string(slot));
    }
};

}  // namespace holdfast
