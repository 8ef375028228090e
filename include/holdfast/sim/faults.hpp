// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/clock.hpp>

#include <chrono>
#include <cstdint>

namespace holdfast::sim {

/// What goes wrong in a world, and how often. A rate is in parts per thousand of the occasions that it names; 0: never.
struct faults {
    /// How long a message takes.
    boot_clock::duration shortest_delay = std::chrono::microseconds{50};
    boot_clock::duration longest_delay = std::chrono::microseconds{500};

    /// Of messages: it takes up to `very_late` longer; those behind it on its connection wait.
    unsigned late = 0;
    boot_clock::duration very_late = std::chrono::seconds{1};

    /// Of requests, of replies: it is lost, and so is everything behind it on its connection in this direction; nobody is told.
    unsigned lost_request = 0;
    unsigned lost_reply = 0;

    /// Of requests: it arrives once more, up to `very_late` after the first time. The second answer goes nowhere.
    unsigned repeated_request = 0;

    /// Of requests: the connection breaks. Some of the requests under way still arrive, no reply does.
    unsigned cut = 0;

    /// Of reports of a release: it is lost.
    unsigned lost_report = 0;

    /// Of steps of a client (before it hears an answer or a timer; before a request leaves): it stands still for up to `longest_pause`.
    unsigned pause = 0;
    boot_clock::duration longest_pause = std::chrono::seconds{1};
};

/// How often each fault happened.
struct fault_count {
    std::uint64_t late = 0;
    std::uint64_t lost_requests = 0;
    std::uint64_t lost_replies = 0;
    std::uint64_t repeated_requests = 0;
    std::uint64_t cuts = 0;
    std::uint64_t lost_reports = 0;
    std::uint64_t pauses = 0;
    std::uint64_t crashes = 0;
    std::uint64_t memories_lost = 0;
    std::uint64_t hangs = 0;
    std::uint64_t votes_refused = 0;

    fault_count& operator+=(fault_count const& other) noexcept
    {
        late += other.late;
        lost_requests += other.lost_requests;
        lost_replies += other.lost_replies;
        repeated_requests += other.repeated_requests;
        cuts += other.cuts;
        lost_reports += other.lost_reports;
        pauses += other.pauses;
        crashes += other.crashes;
        memories_lost += other.memories_lost;
        hangs += other.hangs;
        votes_refused += other.votes_refused;
        return *this;
    }
};

}  // namespace holdfast::sim
