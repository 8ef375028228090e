// SPDX-License-Identifier: MIT
#pragma once

#include "history.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::test {

/// Never are more permits claimed than there are, and never at a time by two clients that say different numbers.
class permit_limit {
public:
    /// A claim begins or ends.
    struct step {
        boot_clock::time_point at{};
        int by = 0;  ///< by how much the number of claims changes
        claim const* of = nullptr;
    };

    /// Returns: the steps of all claims, in the order of their times; ends come first.
    [[nodiscard]] static std::vector<step> steps(history const& claims)
    {
        std::vector<step> all;
        for (auto const& c : claims) {
            if (c.over() <= c.granted) continue;
            all.push_back({c.granted, 1, &c});
            all.push_back({c.over(), -1, &c});
        }
        std::sort(all.begin(), all.end(), [](step const& a, step const& b) {
            return std::pair{a.at, a.by} < std::pair{b.at, b.by};
        });
        return all;
    }

    /// Returns: what is wrong with a history; nothing where all is well.
    [[nodiscard]] static std::optional<std::string> breach(history const& claims)
    {
        std::map<std::size_t, std::size_t> claimed;  // by the number that their clients say
        for (auto const& one : steps(claims)) {
            auto const permits = one.of->permits;
            auto& now = claimed[permits];
            if (one.by < 0) {
                if (--now == 0) claimed.erase(permits);
                continue;
            }
            auto const when = " at " + std::to_string(one.at.time_since_epoch().count()) + " ns";
            if (++now > permits)
                return std::to_string(now) + " permits of " + std::to_string(permits) + " are claimed" + when;
            if (claimed.size() > 1)
                return "client " + std::to_string(one.of->client) + " was granted one of " + std::to_string(permits) +
                       " permits while another client had one of another number," + when;
        }
        return {};
    }
};

}  // namespace holdfast::test
