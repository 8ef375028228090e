// SPDX-License-Identifier: MIT
#pragma once

#include "history.hpp"

#include <algorithm>
#include <optional>
#include <string>

namespace holdfast::test {

/// Every fence reserved by a claim is greater than all of those that were granted before; if it is shared, than those
/// of the claims that are not.
class fencing {
public:
    /// Returns: what is wrong with a history; nothing where all is well.
    [[nodiscard]] static std::optional<std::string> breach(history claims)
    {
        std::stable_sort(claims.begin(), claims.end(),
                         [](claim const& a, claim const& b) { return a.granted < b.granted; });
        claim const* greatest = nullptr;
        claim const* greatest_alone = nullptr;
        for (auto const& c : claims) {
            auto const* const before = c.shared ? greatest_alone : greatest;
            if (c.first_fence == 0 || c.last_fence < c.first_fence)
                return "client " + std::to_string(c.client) + " was granted no fence";
            if (before && c.first_fence <= before->last_fence)
                return "client " + std::to_string(c.client) + " was granted fence " + std::to_string(c.first_fence) +
                       " after client " + std::to_string(before->client) + " had " + std::to_string(before->last_fence);
            if (!greatest || greatest->last_fence < c.last_fence) greatest = &c;
            if (!c.shared) greatest_alone = &c;
        }
        return {};
    }
};

}  // namespace holdfast::test
