// SPDX-License-Identifier: MIT
#pragma once

#include "../record.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::faults {

/// What a check found wrong; nothing where all is well.
using breaches = std::vector<std::string>;

inline constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

/// One hold of one lock, as far as its holder has written it down. Times that did not come are `never`.
struct hold {
    std::uint32_t client = 0;
    std::uint32_t lock = 0;
    std::uint32_t number = 0;
    std::uint64_t token = 0;
    std::int64_t begun = 0;  ///< the acquire
    std::int64_t granted = 0;
    std::int64_t valid_until = 0;  ///< the latest that the holder was promised
    std::int64_t lost = never;     ///< announced
    std::int64_t release_begun = never;
    std::int64_t release_done = never;
    std::int64_t shared_from = never;  ///< others may share it from then on, as its holder becomes one that does
    std::int64_t broken = never;       ///< an operator took it from its holder then, or soon after
    std::int64_t kept_until = std::numeric_limits<std::int64_t>::min();  ///< although it was given up
    release_result result = release_result::unknown;
    bool found_lost = false;  ///< its holder asked, and was told that it was over
    bool shared = false;      ///< with other holders of the lock whose holds are shared, too

    /// Returns: until when the holder claims to have the lock.
    [[nodiscard]] std::int64_t over() const noexcept
    {
        return std::max(std::min({valid_until, lost, release_begun, broken}), kept_until);
    }

    /// Returns: until when it claims that no other has it, or shares it. Requires: it is not shared.
    [[nodiscard]] std::int64_t alone_until() const noexcept { return std::min(over(), shared_from); }

    /// Returns: whether it was over when its holder, who stood still meanwhile, heard of it. It claims nothing.
    [[nodiscard]] bool came_late() const noexcept { return over() <= granted; }

    /// Returns: whether the two may not be held at the same time. Requires: `other` was granted before.
    [[nodiscard]] bool excludes(hold const& other) const noexcept
    {
        return !shared || !(other.shared || other.shared_from <= granted);
    }

    [[nodiscard]] std::string name() const
    {
        return "client " + std::to_string(client) + ", hold " + std::to_string(number);
    }
};

/// Returns: the holds of every lock, each in the order of its grants. Requires: `records` is sorted by time.
[[nodiscard]] inline std::map<std::uint32_t, std::vector<hold>> holds_of(std::vector<record> const& records)
{
    std::map<std::uint32_t, std::vector<hold>> all;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> begun;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::pair<std::uint32_t, std::size_t>> places;
    for (auto const& r : records) {
        auto const key = std::pair{r.client, r.hold};
        if (r.what == event::acquire_begun) begun[key] = r.at;
        if (r.what == event::acquire_ok) {
            auto& of_lock = all[r.lock];
            places[key] = {r.lock, of_lock.size()};
            of_lock.push_back({.client = r.client,
                               .lock = r.lock,
                               .number = r.hold,
                               .token = r.token,
                               .begun = begun[key],
                               .granted = r.at,
                               .valid_until = r.valid_until,
                               .shared = r.shared});
        }
        auto const place = places.find(key);
        if (place == places.end()) continue;
        auto& h = all[place->second.first][place->second.second];
        if (r.what == event::renewed) h.valid_until = std::max(h.valid_until, r.valid_until);
        if (r.what == event::shared_on) h.shared_from = r.at;
        if (r.what == event::loss_announced) h.lost = std::min(h.lost, r.at);
        if (r.what == event::answered && r.value == 0) h.found_lost = true;
        if (r.what == event::release_begun) h.release_begun = r.at;
        if (r.what == event::release_done) {
            h.release_done = r.at;
            h.result = static_cast<release_result>(r.value);
            if (r.valid_until != 0) h.kept_until = r.valid_until;
        }
    }
    for (auto const& r : records) {
        if (r.what != event::broken) continue;
        auto const asked = static_cast<std::int64_t>(r.value);
        for (auto& h : all[r.lock]) {
            if (h.granted > r.at || h.over() <= asked) continue;
            h.broken = std::max(asked, h.granted);
            break;
        }
    }
    return all;
}

/// Returns: "1.250 ms".
[[nodiscard]] inline std::string milliseconds(std::int64_t ns)
{
    auto const us = ns / 1000;
    auto const fraction = std::to_string(us % 1000 + 1000);
    return std::to_string(us / 1000) + '.' + fraction.substr(1) + " ms";
}

}  // namespace holdfast::faults
