// SPDX-License-Identifier: MIT
#pragma once

#include "report.hpp"

#include <string>

namespace holdfast::benchmark {

/// Effects: adds to the report what its figures depend on: processors and versions, and the commit that is measured;
/// nothing that names the machine.
void describe_machine(report& to, std::string const& commit);

}  // namespace holdfast::benchmark
