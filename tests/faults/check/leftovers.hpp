// SPDX-License-Identifier: MIT
#pragma once

#include "history.hpp"

#include <cstdint>
#include <string>

namespace holdfast::faults {

/// What a process uses.
struct footprint {
    long descriptors = 0;
    long threads = 0;
    long resident = 0;  ///< bytes of memory that is not shared or a file's
};

/// Returns: that of this process.
[[nodiscard]] footprint own_footprint();

/// What is left in a store after a run.
struct remains {
    std::vector<std::string>
        keys{};  ///< or nodes; fence counters that will be forgotten by themselves are not among them
    long channels = 0;
};

/// K7. Returns: what is left in the store.
[[nodiscard]] inline breaches check_remains(remains const& left)
{
    breaches found;
    for (auto const& one : left.keys) found.push_back("left behind: " + one);
    if (left.channels != 0) found.push_back(std::to_string(left.channels) + " channels have subscribers yet");
    return found;
}

/// K7. Returns: what a process has more of than before the run; of memory, more than a MiB.
[[nodiscard]] inline breaches check_footprint(std::string const& whose, footprint const& before, footprint const& after,
                                              long memory = 1024L * 1024)
{
    breaches found;
    auto const compare = [&](char const* what, long was, long is, long allowed) {
        if (is - was > allowed)
            found.push_back(whose + ": " + std::to_string(is) + ' ' + what + " after the run, " + std::to_string(was) +
                            " before");
    };
    compare("descriptors", before.descriptors, after.descriptors, 0);
    compare("threads", before.threads, after.threads, 0);
    compare("bytes of memory", before.resident, after.resident, memory);
    return found;
}

}  // namespace holdfast::faults
