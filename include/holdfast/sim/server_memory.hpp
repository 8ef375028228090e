// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/sim/fence_counters.hpp>
#include <holdfast/sim/permit_counts.hpp>
#include <holdfast/sim/read_phase.hpp>
#include <holdfast/sim/stored_keys.hpp>
#include <holdfast/sim/waiting_lines.hpp>

#include <chrono>

namespace holdfast::inline HOLDFAST_ABI::sim {

/// All that a simulated server knows, and can lose.
class server_memory {
protected:
    /// Effects: forgets what has expired at `t`, by the server's clock.
    void forget_until(std::chrono::milliseconds t)
    {
        std::erase_if(keys_, [&](auto const& one) { return one.second.expires && *one.second.expires <= t; });
        fences_.forget_expired(t);
        lines_.forget_expired(t);
        for (auto& one : phases_) one.second.forget_expired(t);
    }

    key_table keys_;
    fence_counters fences_;
    waiting_lines lines_;
    phase_table phases_;
    permit_counts numbers_;
};

}  // namespace holdfast::sim
