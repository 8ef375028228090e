// SPDX-License-Identifier: MIT
#include "rows.hpp"

namespace holdfast::faults {

std::vector<row> const& all_rows()
{
    static std::vector<row> const rows{
        {"paused_holder", "no stale write is taken, at least a fifth refused; the first question is answered right; one loss callback within 50 ms",
         "the register does not check tokens", paused_holder},
        {"unknown_outcome", "never reported as not acquired while held; no orphan beyond ttl; K1", "a roll-back does not compare whose the lock is", unknown_outcome},
        {"killed_holder", "the lock of a dead holder is free within ttl + 100 ms", "the lock guards nothing", killed_holder},
        {"masters_down", "a minority down: no failure, calls within the node timeout + 50 ms; a majority: unavailable by the deadline, rolled back",
         "three masters are down where one or two are said to be", masters_down},
        {"lost_memory", "a master that lost its memory does not help to grant a lock that is held", "no restart guard", lost_memory},
    };
    return rows;
}

}  // namespace holdfast::faults
