// SPDX-License-Identifier: MIT
#pragma once

#include <sys/resource.h>

namespace holdfast::test {

/// Returns: how often `who`, as in `getrusage`, has waited for something so far: `RUSAGE_THREAD`, this thread;
/// `RUSAGE_SELF`, all of this process.
[[nodiscard]] inline long sleeps_of(int who)
{
    ::rusage used{};
    ::getrusage(who, &used);
    return used.ru_nvcsw;
}

}  // namespace holdfast::test
