// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/sim/host.hpp>

namespace holdfast::test {

/// Effects: has `boot_clock::now()`, as it is shipped, read the clocks of the simulated computer whose process asks: the process calls what
/// this program has in the place of `clock_gettime`. Others get the time of this machine.
void read_shipped_clock(sim::host& h);

}  // namespace holdfast::test
