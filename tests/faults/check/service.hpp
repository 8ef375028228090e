// SPDX-License-Identifier: MIT
#pragma once

#include "history.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace holdfast::faults {

/// How one client was served.
struct service {
    std::size_t grants = 0;
    std::int64_t longest = 0;  ///< the longest wait for a grant, in ns
};

/// Returns: how each client was served, as to grants from `from` until `until`. A wait is from the beginning of the
/// first attempt to the grant; attempts that failed between them are part of it. What comes before the client was
/// continued after a stop is not. A wait without a grant lasts until the client was killed, or until `until`.
/// Requires: `records` is sorted by time.
[[nodiscard]] inline std::map<std::uint32_t, service> service_of(std::vector<record> const& records, std::int64_t from,
                                                                 std::int64_t until)
{
    std::map<std::uint32_t, service> all;
    std::map<std::uint32_t, std::int64_t> waiting;  // since when
    auto const ended = [&](std::uint32_t client, std::int64_t at) {
        auto const since = waiting.find(client);
        if (since == waiting.end()) return;
        if (at >= from) all[client].longest = std::max(all[client].longest, at - since->second);
        waiting.erase(since);
    };
    for (auto const& r : records) {
        if (r.at >= until) break;
        if (r.what == event::acquire_begun) waiting.emplace(r.client, r.at);
        if (r.what == event::acquire_ok || r.what == event::killed || r.what == event::paused) {
            bool const goes_on = r.what == event::paused && waiting.contains(r.client);
            ended(r.client, r.at);
            if (goes_on) waiting[r.client] = never;  // until it is continued
        }
        if (r.what == event::continued && waiting.contains(r.client)) waiting[r.client] = r.at;
        if (r.what == event::acquire_ok && r.at >= from) ++all[r.client].grants;
    }
    for (auto const& [client, since] : std::map{waiting}) ended(client, until);
    return all;
}

/// Returns: Jain's index: 1 if all have the same, 1/n if one of n has everything. Source: Jain, Chiu and Hawe, "A
/// Quantitative Measure of Fairness and Discrimination for Resource Allocation in Shared Computer Systems".
[[nodiscard]] inline double fairness(std::vector<std::size_t> const& shares)
{
    double sum = 0;
    double squares = 0;
    for (auto const one : shares) {
        sum += static_cast<double>(one);
        squares += static_cast<double>(one) * static_cast<double>(one);
    }
    return squares == 0 ? 1 : sum * sum / (static_cast<double>(shares.size()) * squares);
}

}  // namespace holdfast::faults
