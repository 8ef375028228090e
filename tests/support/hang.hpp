// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>

namespace holdfast::test {

/// Effects: if this process still runs after `limit`, it says on stderr where each of its threads is. It takes gdb for
/// that, and says so where there is none. A child that is forked says nothing.
void tell_where_it_hangs(std::chrono::milliseconds limit);

/// Effects: the same, shortly before CTest ends the test, if that has set HOLDFAST_TEST_TIMEOUT (in seconds).
void tell_where_it_hangs();

}  // namespace holdfast::test
