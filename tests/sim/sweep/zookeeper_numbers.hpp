// SPDX-License-Identifier: MIT
#pragma once

#include "history.hpp"
#include "permit_limit.hpp"
#include "zookeeper_servers.hpp"

#include <holdfast/core/clock.hpp>
#include <holdfast/zookeeper/requests.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

namespace holdfast::test {

/// The changes of the number of permits in one schedule, kept as slots.
struct number_changes {
    using time_point = boot_clock::time_point;

    struct change {
        unsigned client = 0;
        std::size_t to = 0;
        time_point begun{};
        time_point done = time_point::max();
        time_point over = time_point::max();  ///< its client has other slots from then on, or none
        std::int64_t session = 0;             ///< in which it was done; 0: it failed, or is not known to be done
    };

    bool on = false;          ///< there are such changes
    std::size_t decided = 0;  ///< the number that a client wanted last
    std::deque<change> all{};

    /// Returns: whether it is the removal of a mark of another number by a client that has changed it.
    [[nodiscard]] bool explain(node_change const& one) const
    {
        auto const& path = one.what.path;
        if (path.find("#max/") == std::string::npos) return false;
        return std::any_of(all.begin(), all.end(), [&](change const& c) {
            return c.client == one.client && c.begun <= one.at && !path.ends_with('-' + std::to_string(c.to));
        });
    }

    /// Returns: what is wrong with a history; nothing if all is well. Never are more permits claimed than the
    /// greatest number in use since the oldest of them was granted; after a change, no permit of another number is
    /// granted to one that asks then, as long as the session of the change has its slots, and no other change came.
    [[nodiscard]] std::optional<std::string> breach(history const& claims, zookeeper_servers const& servers) const
    {
        std::map<std::size_t, std::size_t> claimed;  // by number
        std::size_t count = 0;
        for (auto const& one : permit_limit::steps(claims)) {
            auto& of_number = claimed[one.of->permits];
            one.by < 0 ? (--of_number, --count) : (++of_number, ++count);
            if (of_number == 0) claimed.erase(one.of->permits);
            if (count > (claimed.empty() ? 0 : claimed.rbegin()->first))
                return std::to_string(count) + " permits are claimed, more than of any number in use, at " +
                       std::to_string(one.at.time_since_epoch().count()) + " ns";
        }
        for (auto const& c : claims)
            for (auto const& r : all) {
                if (r.session == 0 || c.permits == r.to || c.asked < r.done) continue;
                if (c.granted >= std::min(r.over, servers.ended(r.session))) continue;
                bool const alone = std::none_of(all.begin(), all.end(), [&](change const& other) {
                    return other.to != r.to && other.begun < c.granted && other.done > r.begun;
                });
                if (alone)
                    return "client " + std::to_string(c.client) + " was granted one of " + std::to_string(c.permits) +
                           " permits after their number was " + std::to_string(r.to);
            }
        return {};
    }
};

}  // namespace holdfast::test
