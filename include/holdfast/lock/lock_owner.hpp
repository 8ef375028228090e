// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/hold.hpp>
#include <holdfast/core/options.hpp>
#include <holdfast/core/token.hpp>

#include <memory>

namespace holdfast::detail {

/// What a mutex object has of a lock. It is occupied from a grant to the `unlock`, also when the lease was lost in between: an
/// `unlock` that comes late must not free what the same object was granted since.
struct lock_owner {
    std::shared_ptr<hold> held;
    owner_token token;
    std::shared_ptr<lock_options const> options;
};

}  // namespace holdfast::detail
