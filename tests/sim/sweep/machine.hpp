// SPDX-License-Identifier: MIT
#pragma once

#include "verdict.hpp"

#include <holdfast/sim/decision.hpp>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::test {

/// A lock that is shipped, and how one schedule of it is run.
struct machine {
    std::string_view name;
    std::string_view about;
    verdict (*run)(std::uint64_t seed, run_options const& options);
    std::vector<sim::decision::kind> faults;  ///< that have to happen, or the schedules mean nothing
    bool long_holds = true;                   ///< leases are renewed, and some of them lost
};

/// Returns: those of this program, in the order of their names.
[[nodiscard]] inline std::vector<machine>& machines()
{
    static std::vector<machine> all;
    return all;
}

/// Makes a machine one of them. One more lock is one more object of this type, with a function that runs a schedule of
/// it.
struct shipped_machine {
    explicit shipped_machine(machine m)
    {
        auto& all = machines();
        all.insert(
            std::upper_bound(all.begin(), all.end(), m, [](auto const& a, auto const& b) { return a.name < b.name; }),
            std::move(m));
    }
};

}  // namespace holdfast::test
