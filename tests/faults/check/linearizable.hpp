// SPDX-License-Identifier: MIT
#pragma once

#include "history.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

namespace holdfast::faults {

/// Who refuses an acquire.
enum class refused_by { holder, holder_or_contender };

/// Of some holds, the one that can end last, if each ends as soon as it can.
struct last_to_end {
    hold const* one = nullptr;
    std::int64_t at = 0;

    void add(hold const& h, std::int64_t ends) noexcept
    {
        if (!one || ends > at) one = &h;
        at = std::max(at, ends);
    }
};

/// K5. Whether the histories of all locks are those of an owner-aware mutex whose leases expire, or of a read-write
/// lock, if holds are shared: there is an order of points, each within its operation, at which
///
/// | operation            | acts | where |
/// |----------------------|------|-------|
/// | acquire, granted     | nobody → the owner | begun … granted |
/// | acquire, granted, shared | nobody, or owners that share it → these and the owner | begun … granted |
/// | release, freed       | the owner → nobody | begun … done |
/// | release, lost        | nothing of the owner's is there; it ended by its expiry | – |
/// | release, lost, where a majority is asked | the same, or the owner → nobody: what some had forgotten, it took from the others | begun … ever |
/// | release, unknown     | the owner → nobody, or its expiry does that | begun … ever |
/// | expiry               | the owner → nobody | the lease's end or the announced loss … ever |
/// | breaking, by an operator | the owner → none | begun … ever |
/// | going over to those who share it | the owner → none, as before a shared acquire | begun … ever |
/// | acquire, refused     | somebody else has it; of one that is shared: alone | begun … refused |
/// | acquire, unknown     | any time from its beginning on, or never; what it took may expire, or be rolled back, at any time | begun … ever |
///
/// Holds span from their grant to the first point at which they can end, and spans that cannot be empty have only one
/// order: that of their grants. In it each takes the earliest points that it can, which leaves most room to the next:
/// so for holds the answer is exact. Shared holds are in order with the others, not with each other. Refused acquires
/// are compared with all who can have had the lock meanwhile, each by itself. Contenders for several masters can split
/// the votes, and all be refused: an attempt under way counts as somebody there. So does, for one server, one under way
/// in a fault: it may have been granted the lock by an answer that came too late or never, and be refused it
/// afterwards. What it had is there for another `ttl` at most, in ns.
/// Source: the definition of linearizability by Herlihy and Wing, "Linearizability: A Correctness Condition for
/// Concurrent Objects".
[[nodiscard]] inline breaches check_linearizable(std::vector<record> const& records,
                                                 refused_by whom = refused_by::holder, std::int64_t ttl = 0)
{
    breaches found;
    struct span {
        std::uint32_t client;
        std::int64_t from, until;  // the most that it can cover
        std::uint32_t hold;
        bool shared;
    };
    std::map<std::uint32_t, std::vector<span>> possible;

    for (auto const& [lock, holds] : holds_of(records)) {
        auto const first_end = [whom](hold const& h) {
            if (h.result == release_result::freed && h.release_done != never)
                return std::min(h.release_begun, h.broken);
            bool const was_gone = h.result == release_result::lost && whom == refused_by::holder;
            return std::min({h.valid_until, h.lost, h.broken, was_gone ? never : h.release_begun});
        };
        auto const last_end = [](hold const& h) { return h.result == release_result::freed ? h.release_done : never; };
        last_to_end of_all;
        last_to_end alone;
        auto& spans = possible[lock];
        std::size_t open = 0;  // from here on are spans that a hold which is not shared ends
        for (auto const& h : holds) {
            bool const ordered = !h.came_late();  // by its grant; the next one may have been granted it before
            auto const& before = h.shared ? alone : of_all;
            if (ordered && before.one && before.at > h.granted)
                found.push_back("lock " + std::to_string(lock) + ": " + h.name() + " was granted it " +
                                milliseconds(before.at - h.granted) + " before " + before.one->name() +
                                " can have ended");
            auto const taken = std::max(h.begun, std::min(before.at, h.granted));
            for (auto i = open; ordered && i < spans.size(); ++i)
                if (!h.shared || !spans[i].shared) spans[i].until = std::min(spans[i].until, h.granted);
            if (ordered && !h.shared) open = spans.size();
            spans.push_back({h.client, ordered ? taken : h.begun, last_end(h), h.number, h.shared});
            if (!ordered) continue;
            auto const ends = std::max(taken, first_end(h));
            if (ends > last_end(h))
                found.push_back("lock " + std::to_string(lock) + ": " + h.name() +
                                " freed it before it can have had it");
            of_all.add(h, ends);
            if (!h.shared) alone.add(h, std::min(ends, h.shared_from));
        }
    }
    std::map<std::pair<std::uint32_t, std::uint32_t>, record> begun;
    for (auto const& r : records) {
        if (r.what == event::acquire_begun) begun[{r.client, r.hold}] = r;
        if (r.what == event::acquire_ok || r.what == event::acquire_failed)
            begun[{r.client, r.hold}].what = event::none;
    }
    for (auto const& [key, r] : begun)  // unknown, or its client was killed
        if (r.what != event::none) possible[r.lock].push_back({r.client, r.at, never, r.hold, r.shared});
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> asked;
    std::int64_t fault_ended = -1;
    bool in_fault = false;
    for (auto const& r : records) {
        if (r.what == event::fault_begun || r.what == event::fault_ended) in_fault = r.what == event::fault_begun;
        if (r.what == event::fault_ended) fault_ended = r.at;
        if (r.what == event::acquire_begun) asked[{r.client, r.hold}] = r.at;
        if (r.what != event::acquire_failed) continue;
        auto const from = asked[{r.client, r.hold}];
        bool const disturbed = in_fault || fault_ended >= from;
        if (whom == refused_by::holder_or_contender || (disturbed && ttl > 0))
            possible[r.lock].push_back({r.client, from, disturbed ? r.at + ttl : r.at, r.hold, r.shared});
    }
    for (auto& [lock, spans] : possible)
        std::stable_sort(spans.begin(), spans.end(), [](auto const& a, auto const& b) { return a.from < b.from; });
    for (auto const& r : records) {
        if (r.what == event::acquire_begun) asked[{r.client, r.hold}] = r.at;
        if (r.what != event::acquire_failed) continue;
        auto const from = asked[{r.client, r.hold}];
        auto const& spans = possible[r.lock];
        auto const behind =
            std::partition_point(spans.begin(), spans.end(), [&](span const& s) { return s.from <= r.at; });
        // An own attempt whose outcome is open refuses the next one, too, and itself in a later round: it is another
        // owner.
        bool const refused_by_one = std::any_of(std::make_reverse_iterator(behind), spans.rend(), [&](span const& s) {
            bool const excludes = !r.shared || !s.shared;
            return excludes && s.until >= from && !(s.client == r.client && s.hold == r.hold && s.until == r.at);
        });
        if (!refused_by_one)
            found.push_back("lock " + std::to_string(r.lock) + ": client " + std::to_string(r.client) +
                            " was refused it in attempt " + std::to_string(r.hold) + ", when nobody can have had it");
    }
    return found;
}

}  // namespace holdfast::faults
