// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <functional>

namespace holdfast::test {

/// Effects: runs `fork` in a thread that lasts as long as the process: PR_SET_PDEATHSIG tells a child
/// of the end of the *thread* that forked it, so one forked by a thread that ends would die with it.
::pid_t in_lasting_thread(std::function<::pid_t()> const& fork);

}  // namespace holdfast::test
