// SPDX-License-Identifier: MIT
#pragma once

#include "history.hpp"

namespace holdfast::faults {

/// K1. Returns: where claimed holds of one lock overlap, unless both are shared. One whose holder becomes one of those
/// who share it is so from then on: no other that is not shared comes in between.
[[nodiscard]] inline breaches check_exclusion(std::vector<record> const& records)
{
    breaches found;
    for (auto const& [lock, holds] : holds_of(records)) {
        hold const* longest_of_all = nullptr;
        hold const* longest_alone = nullptr;
        for (auto const& h : holds) {
            if (h.came_late()) continue;
            auto const* const longest = h.shared ? longest_alone : longest_of_all;
            auto const until = !longest ? h.granted : h.shared ? longest->alone_until() : longest->over();
            if (h.granted < until)
                found.push_back("lock " + std::to_string(lock) + ": " + h.name() + " was granted it while " +
                                longest->name() + " held it for another " + milliseconds(until - h.granted));
            if (!longest_of_all || longest_of_all->over() < h.over()) longest_of_all = &h;
            if (!h.shared && (!longest_alone || longest_alone->alone_until() < h.alone_until())) longest_alone = &h;
        }
    }
    return found;
}

}  // namespace holdfast::faults
