// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>
#include <time.h>

#include <stdexcept>

namespace holdfast::benchmark {

/// Returns: the seconds of a processor that the process has used.
[[nodiscard]] inline double processor_seconds(::pid_t process)
{
    ::clockid_t id{};
    ::timespec used{};
    if (::clock_getcpuclockid(process, &id) != 0 || ::clock_gettime(id, &used) != 0)
        throw std::runtime_error{"a process does not show what it uses"};
    return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

}  // namespace holdfast::benchmark
