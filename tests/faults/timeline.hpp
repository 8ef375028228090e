// SPDX-License-Identifier: MIT
#pragma once

#include "record.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace holdfast::faults {

/// Effects: draws who held which lock when, and what was done to whom, of the first seconds in which something was
/// done.
/// Throws: `std::runtime_error` where the file cannot be written.
void draw(std::string const& title, std::vector<record> const& records, std::filesystem::path const& file);

}  // namespace holdfast::faults
