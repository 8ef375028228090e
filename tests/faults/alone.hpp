// SPDX-License-Identifier: MIT
#pragma once

#include "worker.hpp"

#include <support/process.hpp>

#include <chrono>
#include <string>
#include <vector>

namespace holdfast::faults {

/// Effects: starts a worker on one Redis that is a program of its own, with `environment`: what is preloaded is preloaded there. It ends by
/// itself after `length`. What it guards is its own: only its holds say something of others.
[[nodiscard]] test::child start_alone(duty const& what, std::chrono::milliseconds length, std::vector<std::string> const& environment);

/// Effects: what such a program does. Returns: its exit status.
int work_alone(std::string const& server, std::string const& folder, std::uint32_t client, std::chrono::milliseconds length);

}  // namespace holdfast::faults
