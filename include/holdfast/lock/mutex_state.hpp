// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/hold_state.hpp>
#include <holdfast/core/options.hpp>
#include <holdfast/lock/release_call.hpp>

#include <cstddef>
#include <memory>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// The state of one mutex object; guarded by the queue's mutex. It is occupied from a grant to the `unlock`, even if
/// the lease was lost in between: a late `unlock` must not free a later grant of the same object.
struct mutex_state {
    mutex_state() = default;
    mutex_state(mutex_state const&) = delete;
    mutex_state& operator=(mutex_state const&) = delete;
    ~mutex_state() = default;

    std::shared_ptr<hold_state> held;
    std::unique_ptr<release_call> releasing;  ///< gives back what it holds; null: who does that is lent it
    std::shared_ptr<lock_options const> options;
    std::size_t in_line = 0;  ///< how many of its waiters are in line
    /// Keeps the client from its end. Null: the object is destroyed, and what is granted to it is given back.
    std::shared_ptr<void const> client;
};

}  // namespace holdfast::detail
