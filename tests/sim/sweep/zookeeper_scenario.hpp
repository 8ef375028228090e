// SPDX-License-Identifier: MIT
#pragma once

#include "verdict.hpp"

#include <cstdint>

namespace holdfast::test {

enum class zookeeper_form : std::uint8_t { queue, plain, readers, permits };

/// Effects: runs the schedule of a seed on an ensemble: users in sessions take a lock with the shipped machines, and
/// judge by the shipped arithmetic how long their sessions can be counted on, while things go wrong.
/// Returns: whether what they were told can be true.
[[nodiscard]] verdict run_zookeeper(std::uint64_t seed, zookeeper_form form, run_options const& options = {});

}  // namespace holdfast::test
