// SPDX-License-Identifier: MIT
#pragma once

#include "history.hpp"

#include <cstddef>
#include <cstdint>

namespace holdfast::faults {

/// K4. Of a counter that has no guard but the lock: each section reads it, thinks, and writes one more.
/// Returns: a breach where it does not say `at_the_end` what the acknowledged increments come to. `killed` processes may each have written
/// once more than they wrote down.
[[nodiscard]] inline breaches check_counter(std::vector<record> const& records, std::uint32_t lock, std::uint64_t at_the_end, std::size_t killed = 0)
{
    std::uint64_t acknowledged = 0;
    for (auto const& r : records)
        if (r.what == event::counter_written && r.lock == lock) ++acknowledged;
    if (acknowledged <= at_the_end && at_the_end <= acknowledged + killed) return {};
    return {"lock " + std::to_string(lock) + ": the counter says " + std::to_string(at_the_end) + " after " + std::to_string(acknowledged) +
            " increments, and " + std::to_string(killed) + " at most that were not written down"};
}

}  // namespace holdfast::faults
