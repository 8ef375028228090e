// SPDX-License-Identifier: MIT
#pragma once

#include "findings.hpp"
#include "run.hpp"

#include <filesystem>

namespace quickstart {

/// Effects: draws who held the lock when, a lane per worker, with the faults marked: the whole run, and the moments
/// around each fault.
/// Throws: `std::runtime_error` where the file cannot be written.
void draw(findings const& f, history const& h, std::filesystem::path const& file);

}  // namespace quickstart
