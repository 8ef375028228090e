// SPDX-License-Identifier: MIT
#pragma once

#include "verdict.hpp"

#include <cstdint>

namespace holdfast::test {

/// Effects: runs the schedule of a seed on so many servers (0: three, five or seven): users take a lock with the
/// shipped operations, hold it, renew it and give it back while things go wrong.
/// Returns: whether what they were told can be true.
[[nodiscard]] verdict run_schedule(std::uint64_t seed, unsigned nodes, run_options const& options = {});

}  // namespace holdfast::test
