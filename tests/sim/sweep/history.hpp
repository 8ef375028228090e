// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/clock.hpp>

#include <cstdint>
#include <vector>

namespace holdfast::test {

/// One claim to have the lock, in the time of the world.
struct claim {
    unsigned client = 0;
    boot_clock::time_point granted{};      ///< when the acquire was done
    boot_clock::time_point valid_until{};  ///< what the acquire, or the last renewal that came in time, promised
    boot_clock::time_point ended = boot_clock::time_point::max();  ///< release begun, or loss learnt; `max()` for neither
    std::uint64_t first_fence = 0;         ///< of those reserved
    std::uint64_t last_fence = 0;

    [[nodiscard]] boot_clock::time_point over() const noexcept { return valid_until < ended ? valid_until : ended; }
};

/// All claims to one lock.
using history = std::vector<claim>;

}  // namespace holdfast::test
