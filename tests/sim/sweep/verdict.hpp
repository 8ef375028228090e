// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/sim/decision.hpp>
#include <holdfast/sim/faults.hpp>
#include <holdfast/sim/world.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::test {

/// A guarantee that was broken.
struct breach {
    std::string_view which;  ///< K1, K2, K5, K6, K7 of the checkers; or what else was looked at
    std::string what;
};

/// How a seed is run.
struct run_options {
    std::function<void(sim::event const&)> observer = {};  ///< is told of everything that happens
    std::optional<std::vector<sim::decision>> keep = {};   ///< only these decisions come true; nothing: all
    bool remember = false;                                 ///< the verdict has the decisions
};

/// What came of one schedule.
struct verdict {
    std::vector<test::breach> breaches;
    std::string plan;
    std::vector<sim::decision> decisions;
    std::uint64_t hash = 0;
    std::uint64_t acquired = 0;
    std::uint64_t renewed = 0;
    std::uint64_t lost = 0;     ///< leases that were over before they were released
    std::uint64_t refused = 0;  ///< acquires that failed
    std::uint64_t judged = 0;   ///< times that the heir of a dead holder was looked at
    sim::fault_count happened;
};

}  // namespace holdfast::test
