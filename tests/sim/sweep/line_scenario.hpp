// SPDX-License-Identifier: MIT
#pragma once

#include "verdict.hpp"

#include <cstdint>

namespace holdfast::test {

/// Effects: runs the schedule of a seed in which more clients want a lock than can have it: on one, three or five
/// servers, of which a minority may be down. In every other seed nothing goes wrong with those that are there.
/// Returns: whether the lock went from one to the next, in order, and was never free for long while one waited.
[[nodiscard]] verdict run_line(std::uint64_t seed, run_options const& options = {});

}  // namespace holdfast::test
