// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/sim/faults.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace holdfast::test {

/// What came of one schedule.
struct verdict {
    std::vector<std::string> breaches;
    std::string plan;
    std::uint64_t hash = 0;
    std::uint64_t acquired = 0;
    std::uint64_t renewed = 0;
    std::uint64_t lost = 0;     ///< leases that were over before they were released
    std::uint64_t refused = 0;  ///< acquires that failed
    sim::fault_count happened;
};

}  // namespace holdfast::test
