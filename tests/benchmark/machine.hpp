// SPDX-License-Identifier: MIT
#pragma once

#include "report.hpp"

namespace holdfast::benchmark {

/// Effects: adds to the report what its figures depend on: processors and versions; nothing that names the machine.
void describe_machine(report& to);

}  // namespace holdfast::benchmark
