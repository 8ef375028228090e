// SPDX-License-Identifier: MIT
#pragma once

#include "history.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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
    std::vector<std::string> keys{};  ///< or nodes; those that may stay are not among them
    long channels = 0;
};

/// What became of the waiters of a run.
enum class waiters { ended, killed };

/// K7, of a key on Redis whose `PTTL` is `left`. Returns: whether it may be there after a run: a fence counter, or the
/// queue of a lock if some of its waiters were killed, and only if it expires.
[[nodiscard]] inline bool may_stay(std::string_view key, long long left, waiters w) noexcept
{
    bool const kept =
        key.starts_with("holdfast:fence:") || (w == waiters::killed && key.starts_with("holdfast:queue:"));
    return kept && left >= 0;
}

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
