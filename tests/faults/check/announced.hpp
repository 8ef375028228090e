// SPDX-License-Identifier: MIT
#pragma once

#include "history.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace holdfast::faults {

/// What the holders heard whose locks others were granted before they had begun to release them.
struct announcements {
    std::vector<std::int64_t>
        late;  ///< of each: how long after the next grant the loss was announced, in ns; 0 where it was before
    std::vector<std::int64_t> broken;  ///< of each whose lock was broken: how long after that
    breaches found;
};

/// The loss is announced before a rival is granted the lock, or soon after it was broken. Returns: of each hold that
/// was not released before the next grant to one that it excludes, or before it was broken, and whose client was
/// neither stopped meanwhile nor killed, how late that was; as breaches those that were later than `limit`, and those
/// that were not announced at all while the hold, or `records`, went on for `limit`; and every hold whose holder found
/// it lost, and released it without an announcement, for which it had waited.
[[nodiscard]] inline announcements check_announced(std::vector<record> const& records, std::int64_t limit)
{
    announcements result;
    struct pause {
        std::int64_t from, until;
    };
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<pause>> pauses;  // of a client's lock
    for (auto const& r : records) {
        auto& of = pauses[{r.client, r.lock}];
        if (r.what == event::paused) of.push_back({r.at, never});
        if (r.what == event::killed) of.push_back({r.value != 0 ? static_cast<std::int64_t>(r.value) : r.at, never});
        if (r.what == event::continued && !of.empty()) of.back().until = r.at;
    }
    for (auto const& [lock, holds] : holds_of(records)) {
        for (auto const& h : holds)
            if (h.found_lost && h.lost == never && h.release_begun != never)
                result.found.push_back("lock " + std::to_string(lock) + ": the loss of " + h.name() +
                                       " was not announced before its release");
        for (auto one = holds.begin(); one != holds.end(); ++one) {
            auto const& h = *one;
            auto const rival = [&](hold const& x) { return !x.came_late() && x.excludes(h); };
            auto const after = std::find_if(one + 1, holds.end(), rival);
            bool const broken = h.broken != never;
            if (!broken && after == holds.end()) continue;
            auto const due = broken ? h.broken : after->granted;
            if (h.release_begun <= due || h.valid_until <= h.granted)
                continue;  // the latter was over when its holder heard of it
            auto const& of = pauses[{h.client, lock}];
            auto const excused = [&](pause const& p) {
                return p.until >= h.begun && p.from <= std::max(due, h.valid_until);
            };
            if (std::any_of(of.begin(), of.end(), excused)) continue;
            auto const told = std::min(h.lost, h.release_begun);
            auto const late = std::max<std::int64_t>((told == never ? records.back().at : told) - due, 0);
            if (told != never) (broken ? result.broken : result.late).push_back(late);
            if (late > limit)
                result.found.push_back("lock " + std::to_string(lock) + ": the loss of " + h.name() + " was " +
                                       (h.lost == never ? "not announced " : "announced ") + milliseconds(late) +
                                       " after " + (broken ? "it was broken" : after->name() + " was granted it"));
        }
    }
    return result;
}

}  // namespace holdfast::faults
