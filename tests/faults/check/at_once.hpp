// SPDX-License-Identifier: MIT
#pragma once

#include "history.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace holdfast::faults {

/// Returns: the most holds, of whatever lock, that were claimed at a time.
[[nodiscard]] inline std::size_t most_at_once(std::vector<record> const& records)
{
    std::vector<std::pair<std::int64_t, int>> changes;
    for (auto const& [lock, holds] : holds_of(records))
        for (auto const& h : holds) {
            if (h.came_late()) continue;
            changes.emplace_back(h.granted, 1);
            changes.emplace_back(h.over(), -1);
        }
    std::sort(changes.begin(), changes.end());
    int now = 0;
    int most = 0;
    for (auto const& [at, change] : changes) most = std::max(most, now += change);
    return static_cast<std::size_t>(most);
}

}  // namespace holdfast::faults
