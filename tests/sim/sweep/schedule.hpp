// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/random.hpp>
#include <holdfast/redis/commands.hpp>
#include <holdfast/redis/node_set.hpp>
#include <holdfast/sim/clock.hpp>
#include <holdfast/sim/faults.hpp>
#include <holdfast/sim/node.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace holdfast::test {

/// What one run of the sweep is like: everything that is decided before it begins.
struct schedule {
    std::chrono::milliseconds ttl{};  ///< the longest in use
    std::chrono::milliseconds node_timeout{};
    std::chrono::milliseconds guard{};
    redis::fence_source fences{};
    boot_clock::duration length{};

    std::vector<sim::clock> nodes;
    std::vector<sim::clock> clients;
    redis::node_set astray;  ///< nodes whose clock is so far out of line that they must have no vote

    sim::faults wrong;
    bool calm = false;                        ///< nothing goes wrong with servers, network and clocks, and nobody is paused
    bool mortal = true;                       ///< users die with the lock in their hands
    unsigned crashes = 0;                     ///< of one node
    boot_clock::duration longest_down{};      ///< after a crash
    std::vector<sim::node::memory> memories;  ///< what a node may know after a crash
    unsigned waves = 0;                       ///< how often many nodes forget everything at once, as soon as they are used again
    unsigned hangs = 0;                       ///< of one node
    bool exclusive = true;                    ///< a lone server that forgets its locks and has no guard cannot exclude

    /// Returns: the schedule of a seed. `nodes` is how many servers it has; 0: the seed decides.
    [[nodiscard]] static schedule draw(std::uint64_t seed, unsigned nodes);

    /// Returns: what it is like, for people.
    [[nodiscard]] std::string describe() const;
};

}  // namespace holdfast::test
