// SPDX-License-Identifier: MIT
#pragma once

#include "worker.hpp"

#include <support/process.hpp>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace holdfast::faults {

/// Effects: starts a worker on one Redis that is a program of its own, with `environment`: what is preloaded is
/// preloaded there. It ends by itself after `length`. What it guards is its own: only its holds say something of
/// others.
[[nodiscard]] test::child start_alone(duty const& what, std::chrono::milliseconds length,
                                      std::vector<std::string> const& environment);

/// Returns: how far such a program saw its wall clock ahead of `boot_clock`, each time that this changed, in ms.
[[nodiscard]] std::vector<std::int64_t> wall_clocks_seen(std::filesystem::path const& folder);

/// Returns: how far the wall clock of this process is ahead of `boot_clock`, in ms.
[[nodiscard]] std::int64_t wall_clock_ahead();

/// Effects: what such a program does. Returns: its exit status.
int work_alone(place const& where, std::string const& folder, std::uint32_t client, std::chrono::milliseconds length);

}  // namespace holdfast::faults
