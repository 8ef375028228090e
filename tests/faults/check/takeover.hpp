// SPDX-License-Identifier: MIT
#pragma once

#include "history.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace holdfast::faults {

/// How long the locks of dead or stopped holders were not free.
struct takeovers {
    std::vector<std::int64_t> times;  ///< from the death, or the stop, to the next grant, in ns
    breaches found;
};

/// K6. Returns: for each client that was killed while it had a lock, the time until one that its hold excludes was
/// granted it; as breaches those that took longer than `limit`, and those that nobody was granted while `records` go on
/// for `limit`. With `event::paused` as `end`, the same of those that were stopped. Requires: for longer than their
/// leases.
[[nodiscard]] inline takeovers check_takeover(std::vector<record> const& records, std::int64_t limit,
                                              event end = event::killed)
{
    takeovers result;
    if (records.empty()) return result;
    auto const holds = holds_of(records);
    for (auto const& r : records) {
        if (r.what != end) continue;
        for (auto const& [lock, of_lock] : holds) {
            for (auto one = of_lock.begin(); one != of_lock.end(); ++one) {
                auto const& h = *one;
                if (h.client != r.client || h.granted > r.at || h.over() < r.at) continue;
                auto const next = std::find_if(one + 1, of_lock.end(), [&](hold const& x) { return x.excludes(h); });
                bool const taken = next != of_lock.end();
                auto const free_at = taken ? next->granted : records.back().at;
                if (taken) result.times.push_back(free_at - r.at);
                if (free_at - r.at > limit)
                    result.found.push_back("lock " + std::to_string(lock) + ": " + (taken ? "free " : "not free ") +
                                           milliseconds(free_at - r.at) + " after the " +
                                           (end == event::killed ? "death" : "stop") + " of " + h.name());
            }
        }
    }
    return result;
}

}  // namespace holdfast::faults
