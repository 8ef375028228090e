// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/zookeeper/acquire_machine.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// Returns: what the failure of a client says that asks for one of `ours` permits, if their number is `theirs`.
[[nodiscard]] inline std::string other_number_of(std::string const& theirs, std::string const& ours)
{
    return "its number of permits is " + theirs + ", and this client says " + ours;
}

/// How many permits a semaphore has, as the locks of a session know it; guarded by the session's mutex. While a
/// semaphore uses it, the session has a mark, which `number_recipe` makes.
struct permit_number {
    permit_number(std::string at, std::size_t number) : path{std::move(at)}, permits{number} {}

    std::string const path;      ///< of the node above the marks
    std::size_t const permits;   ///< the number
    unsigned uses = 0;           ///< how many semaphores there are
    leftover mark{};             ///< the mark
    std::int64_t agreed_in = 0;  ///< the session of the mark; 0: there is none

    /// Returns: whether `session`, which is 0 if there is none, has a mark.
    [[nodiscard]] bool agreed(std::int64_t session) const noexcept { return session != 0 && agreed_in == session; }
};

}  // namespace holdfast::zookeeper
