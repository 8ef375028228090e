// SPDX-License-Identifier: MIT
#pragma once

#include "verdict.hpp"

#include <holdfast/sim/world.hpp>

#include <cstdint>
#include <functional>

namespace holdfast::test {

/// Effects: runs the schedule of a seed on so many servers (0: the seed decides): users take a lock with the shipped operations, hold it,
/// renew it and give it back while things go wrong.
/// Returns: whether what they were told can be true.
[[nodiscard]] verdict run_schedule(std::uint64_t seed, unsigned nodes = 0, std::function<void(sim::event const&)> observer = {});

}  // namespace holdfast::test
