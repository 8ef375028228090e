// SPDX-License-Identifier: MIT
#pragma once

#include "history.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace holdfast::faults {

/// K4. Of a counter that has no guard but the lock: each section reads it, thinks, and writes one more.
/// Returns: a breach where it does not say `at_the_end` what the acknowledged increments come to. `killed` processes
/// may each have written once more than they wrote down.
[[nodiscard]] inline breaches check_counter(std::vector<record> const& records, std::uint32_t lock,
                                            std::uint64_t at_the_end, std::size_t killed = 0)
{
    std::uint64_t acknowledged = 0;
    for (auto const& r : records)
        if (r.what == event::counter_written && r.lock == lock) ++acknowledged;
    if (acknowledged <= at_the_end && at_the_end <= acknowledged + killed) return {};
    return {"lock " + std::to_string(lock) + ": the counter says " + std::to_string(at_the_end) + " after " +
            std::to_string(acknowledged) + " increments, and " + std::to_string(killed) +
            " at most that were not written down"};
}

/// Returns: the locks whose counter was written after a hold was over, by a holder that stood still between its last
/// look at the lease and its write: such a counter says nothing.
[[nodiscard]] inline std::set<std::uint32_t> spoilt_counters(std::vector<record> const& records)
{
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> over;
    for (auto const& [lock, holds] : holds_of(records))
        for (auto const& h : holds) over[{h.client, h.number}] = h.over();
    std::set<std::uint32_t> late;
    for (auto const& r : records)
        if (r.what == event::counter_written && r.at > over[{r.client, r.hold}]) late.insert(r.lock);
    return late;
}

}  // namespace holdfast::faults
