// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/sim/decision.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace holdfast::inline HOLDFAST_ABI::sim {

/// What goes wrong in a world, and how often. A rate is in parts per thousand of the occasions that it names; 0: never.
struct faults {
    /// How long a message takes.
    boot_clock::duration shortest_delay = std::chrono::microseconds{50};
    boot_clock::duration longest_delay = std::chrono::microseconds{500};  ///< at most, or always the shortest if less

    /// A server that is farther away than the others: messages to it and from it take this much longer.
    unsigned far = 0;                ///< its number
    boot_clock::duration farther{};  ///< how much longer

    /// Of messages: it takes up to `very_late` longer; those after it on its connection wait.
    unsigned late = 0;
    boot_clock::duration very_late = std::chrono::seconds{1};  ///< how much longer at most

    /// Of requests, of replies: it is lost, and so is everything after it on its connection in this direction; no
    /// process is told.
    unsigned lost_request = 0;
    unsigned lost_reply = 0;  ///< of replies; as `lost_request`

    /// Of requests: it arrives once more, up to `very_late` after the first time. The second answer goes nowhere.
    unsigned repeated_request = 0;

    /// Of requests: the connection breaks. Some of the requests in flight still arrive, no reply does.
    unsigned cut = 0;

    /// Of reports of a release: it is lost.
    unsigned lost_report = 0;

    /// Of steps of a client (before it gets an answer or a timer; before a request leaves): it stands still for up to
    /// `longest_pause`.
    unsigned pause = 0;
    boot_clock::duration longest_pause = std::chrono::seconds{1};  ///< how long it stands still at most

    /// Returns: no faults, with messages that take as long as here.
    [[nodiscard]] faults ended() const
    {
        faults none;
        none.shortest_delay = shortest_delay;
        none.longest_delay = longest_delay;
        none.far = far;
        none.farther = farther;
        return none;
    }
};

/// How often each fault happened.
struct fault_count {
    /// By the number of its kind.
    std::array<std::uint64_t, decision::kinds> of{};
    std::uint64_t memories_lost = 0;  ///< of servers that forgot what they had granted
    std::uint64_t votes_refused = 0;  ///< of servers that had no vote, by the restart guard or the clocks

    /// Returns: how often `k` happened.
    [[nodiscard]] std::uint64_t& operator[](decision::kind k) noexcept { return of[static_cast<std::size_t>(k)]; }
    /// As above.
    [[nodiscard]] std::uint64_t operator[](decision::kind k) const noexcept { return of[static_cast<std::size_t>(k)]; }

    /// Effects: adds those of `other`.
    fault_count& operator+=(fault_count const& other) noexcept
    {
        for (std::size_t k = 0; k < of.size(); ++k) of[k] += other.of[k];
        memories_lost += other.memories_lost;
        votes_refused += other.votes_refused;
        return *this;
    }
};

}  // namespace holdfast::sim
