// SPDX-License-Identifier: MIT
#pragma once

#include "history.hpp"

#include <algorithm>

namespace holdfast::faults {

/// Of an election, each of whose terms is a hold. Returns: the terms of leaders that resigned, and were not deposed
/// before the next one was elected, although their lease went on until then.
[[nodiscard]] inline breaches check_deposed(std::vector<record> const& records)
{
    breaches found;
    for (auto const& [lock, terms] : holds_of(records))
        for (auto one = terms.begin(); one != terms.end(); ++one) {
            auto const next = std::find_if(one + 1, terms.end(), [](hold const& h) { return !h.came_late(); });
            if (next == terms.end() || one->result != release_result::freed || next->granted >= one->valid_until)
                continue;
            if (one->release_done > next->granted)
                found.push_back("lock " + std::to_string(lock) + ": " + one->name() + " was deposed " +
                                milliseconds(one->release_done - next->granted) + " after " + next->name() +
                                " was elected");
        }
    return found;
}

}  // namespace holdfast::faults
