// SPDX-License-Identifier: MIT
#pragma once

#include "board.hpp"
#include "run.hpp"

#include <cstdint>
#include <vector>

namespace quickstart {

/// What the journals say. A section is late when its lease had ended before it wrote; its hold counts until that end.
struct findings {
    using duration = holdfast::boot_clock::duration;

    std::vector<section> in_order;  ///< of all workers, as they began
    std::size_t late = 0;
    duration lease_left{};  ///< of the stopped worker when it was stopped
    std::vector<duration> hand_overs;  ///< from a release to the acquire of another worker; sorted
    std::vector<duration> longest_gaps;  ///< at each fault, with nobody in a section that counts
    duration quiet_gap{};                ///< the same, before the first fault
    std::size_t overlapping = 0;         ///< holds that began before another had ended

    std::uint64_t lost = 0;          ///< updates of the counter that a good section wrote over
    std::uint64_t lost_to_late = 0;  ///< … that a late one wrote over

    std::size_t stale_refused = 0;   ///< late writes that the register refused
    std::size_t stale_accepted = 0;  ///< writes that it took after one of a later holder
    std::size_t good_refused = 0;    ///< writes of a holder in good time that it refused

    [[nodiscard]] bool good() const
    {
        return lost == 0 && stale_accepted == 0 && good_refused == 0 && overlapping == 0;
    }
};

[[nodiscard]] findings judge(board const& shared, history const& h);

}  // namespace quickstart
