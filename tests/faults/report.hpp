// SPDX-License-Identifier: MIT
#pragma once

#include "row.hpp"

#include <chrono>
#include <filesystem>

namespace holdfast::faults {

/// Effects: says on stdout what a row found.
void print(row const& of, run_options const& run, findings const& found, std::chrono::duration<double> took);

/// Effects: writes `<row>.md`, a line of a table, and where there is something to draw `<row>.svg` into `folder`.
/// Throws: `std::runtime_error` where that fails.
void write_results(row const& of, run_options const& run, findings const& found, std::chrono::duration<double> took,
                   std::filesystem::path const& folder);

}  // namespace holdfast::faults
