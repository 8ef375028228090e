// SPDX-License-Identifier: MIT
#pragma once

#include "history.hpp"

namespace holdfast::faults {

/// K1. Returns: where claimed holds of one lock overlap.
[[nodiscard]] inline breaches check_exclusion(std::vector<record> const& records)
{
    breaches found;
    for (auto const& [lock, holds] : holds_of(records)) {
        hold const* longest = nullptr;
        for (auto const& h : holds) {
            if (h.came_late()) continue;
            if (longest && h.granted < longest->over())
                found.push_back("lock " + std::to_string(lock) + ": " + h.name() + " was granted it while " +
                                longest->name() + " held it for another " + milliseconds(longest->over() - h.granted));
            if (!longest || longest->over() < h.over()) longest = &h;
        }
    }
    return found;
}

}  // namespace holdfast::faults
