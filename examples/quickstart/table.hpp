// SPDX-License-Identifier: MIT
#pragma once

#include "findings.hpp"
#include "run.hpp"

namespace quickstart {

/// Effects: prints the findings on stdout.
void print_table(findings const& f, history const& h);

}  // namespace quickstart
