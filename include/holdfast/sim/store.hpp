// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/sim/clock.hpp>
#include <holdfast/sim/decision.hpp>
#include <holdfast/sim/network.hpp>
#include <holdfast/sim/node.hpp>
#include <holdfast/sim/transport.hpp>
#include <holdfast/sim/world.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::sim {

/// Simulated servers that keep locks: one Redis, or the independent masters of a Redlock. They may crash and hang, also
/// at times that the seed decides. It outlives its clients; its world outlives it.
class store final : public network {
public:
    /// Effects: makes `nodes` servers, from 1 to 31. From the 16th on, servers and clients share what chance decides.
    explicit store(sim::world& w, unsigned nodes = 1) : store{w, std::vector<clock>(nodes)} {}

    /// Effects: makes one server for each clock.
    store(sim::world& w, std::span<clock const> clocks) : network{w, clocks}
    {
        if (clocks.size() == 1) options.restart_guard = options.longest_ttl = {};
    }

    /// The options of clients made from now on: the defaults of `redlock::masters`; for one server, without a guard.
    transport_options options{.connect_timeout = std::chrono::seconds{1}, .restart_guard = std::chrono::minutes{1}};

    /// Effects: until `end`, a server crashes or hangs about every `pause`, for up to `longest`. One that crashes
    /// forgets everything if there is a restart guard, and nothing otherwise. The seed decides which server, when, and
    /// for how long. A pause of less than a millisecond is one of a millisecond.
    void disturb(boot_clock::time_point end, boot_clock::duration pause, boot_clock::duration longest)
    {
        pause =
            std::max<boot_clock::duration>(pause, std::chrono::milliseconds{1});  // with none, time would stand still
        auto const next = world().now() + world().between(pause / 2, pause * 3 / 2);
        if (next >= end) return;
        world().at(next, [this, end, pause, longest] {
            auto const node = static_cast<std::uint8_t>(world().below(size()));
            bool const hangs = world().below(2) == 0;
            auto const forgets = options.restart_guard.count() > 0 ? node::memory::lost : node::memory::kept;
            auto const what = hangs ? decision::kind::hang : decision::kind::crash;
            if (world().comes_true({what, decision::nobody, node, disturbed_++}))
                hangs ? hang(node, world().severity(longest)) : crash(node, world().severity(longest), forgets);
            disturb(end, pause, longest);
        });
    }

private:
    friend class client;

    unsigned clients_ = 0;
    std::uint32_t disturbed_ = 0;
};

}  // namespace holdfast::sim
