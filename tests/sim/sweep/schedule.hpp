// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/random.hpp>
#include <holdfast/quorum/node_set.hpp>
#include <holdfast/redis/commands.hpp>
#include <holdfast/sim/clock.hpp>
#include <holdfast/sim/decision.hpp>
#include <holdfast/sim/faults.hpp>
#include <holdfast/sim/node.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace holdfast::test {

/// Something that befalls servers or machines at a time that is known beforehand.
struct disaster {
    sim::decision name;
    boot_clock::duration at{};      ///< since the begin
    boot_clock::duration length{};  ///< how long it takes; of a clock: by how much it is set, one way or the other
    sim::node::memory memory = sim::node::memory::kept;  ///< of a server that starts again
    unsigned saves =
        0;  ///< the server that makes a snapshot at that time; of a wave: which servers it takes; of a poison: which;
            ///< of an eviction: the server, or all where there is no such one; of a refusal: why; of rights: whether
            ///< the client has them then
};

/// What the locks of one client are made with. Those of one name need not agree on it.
struct client_plan {
    std::chrono::milliseconds ttl{};
    bool renews = true;
    bool extends = false;           ///< now and then for longer than its ttl, as far as the guard covers
    bool deferred_release = false;  ///< gives the lock back without waiting for the answer
    unsigned fences = 1;            ///< the most that are reserved with a lock
    std::chrono::milliseconds min_hold{};
    std::chrono::milliseconds stop_margin{};
};

/// What one run of the sweep is like: everything that is decided before it begins.
struct schedule {
    std::chrono::milliseconds ttl{};  ///< the longest in use
    std::chrono::milliseconds node_timeout{};
    std::chrono::milliseconds guard{};
    boot_clock::duration length{};

    std::vector<sim::clock> nodes;
    std::vector<sim::clock> clients;
    std::vector<client_plan> options;  ///< of each client
    quorum::node_set astray;           ///< nodes whose clock is so far out of line that they must have no vote

    sim::faults wrong;
    bool calm = false;                ///< nothing goes wrong with servers, network and clocks, and nobody is paused
    bool undisturbed = false;         ///< nothing goes wrong but that keys are deleted
    bool mortal = true;               ///< users die with the lock in their hands
    std::vector<disaster> disasters;  ///< those of servers and machines
    bool forgetful = false;           ///< servers lose memory
    unsigned queueless = 0;           ///< clients that have not the rights to the queue of waiters: a bit for each
    std::chrono::milliseconds fence_lifetime = redis::shortest_fence_lifetime;
    bool straggler =
        false;  ///< at the end comes somebody who connected at the beginning, and whose clock was not right in between:
    boot_clock::duration leap{};  ///< it leapt by so much;
    unsigned stood_still = 0;     ///< it stood still for so many hundredths of the time
    unsigned remembers = 0;       ///< the server that then does not forget; none where there is no such one
    bool exclusive = true;        ///< a lone server that forgets its locks and has no guard cannot exclude

    /// Since when everything goes well, but for those who stand still: a time of the world. Known when it has come.
    boot_clock::time_point well_since = boot_clock::time_point::max();

    /// Returns: the schedule of a seed, with so many servers; 0: three, five or seven.
    [[nodiscard]] static schedule draw(std::uint64_t seed, unsigned nodes);

    /// Returns: until when servers may be down, hang or have no vote because of `disasters`, since the begin; and those
    /// of processes and machines.
    [[nodiscard]] boot_clock::duration servers_well_after() const;

    /// Returns: what it is like, for people.
    [[nodiscard]] std::string describe() const;
};

}  // namespace holdfast::test
