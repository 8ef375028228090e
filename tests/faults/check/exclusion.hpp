// SPDX-License-Identifier: MIT
#pragma once

#include "history.hpp"

namespace holdfast::faults {

/// K1. Returns: where claimed holds of one lock overlap, unless both are shared.
[[nodiscard]] inline breaches check_exclusion(std::vector<record> const& records)
{
    breaches found;
    for (auto const& [lock, holds] : holds_of(records)) {
        hold const* longest_of_all = nullptr;
        hold const* longest_alone = nullptr;
        for (auto const& h : holds) {
            if (h.came_late()) continue;
            auto const* const longest = h.shared ? longest_alone : longest_of_all;
            if (longest && h.granted < longest->over())
                found.push_back("lock " + std::to_string(lock) + ": " + h.name() + " was granted it while " +
                                longest->name() + " held it for another " + milliseconds(longest->over() - h.granted));
            if (!longest_of_all || longest_of_all->over() < h.over()) longest_of_all = &h;
            if (!h.shared && (!longest_alone || longest_alone->over() < h.over())) longest_alone = &h;
        }
    }
    return found;
}

}  // namespace holdfast::faults
