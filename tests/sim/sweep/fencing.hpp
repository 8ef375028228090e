// SPDX-License-Identifier: MIT
#pragma once

#include "history.hpp"

#include <algorithm>
#include <optional>
#include <string>

namespace holdfast::test {

/// Every fence reserved by a claim is greater than all of those that were granted before.
class fencing {
public:
    /// Returns: what is wrong with a history; nothing where all is well.
    [[nodiscard]] static std::optional<std::string> breach(history claims)
    {
        std::stable_sort(claims.begin(), claims.end(),
                         [](claim const& a, claim const& b) { return a.granted < b.granted; });
        claim const* before = nullptr;
        for (auto const& c : claims) {
            if (c.first_fence == 0 || c.last_fence < c.first_fence)
                return "client " + std::to_string(c.client) + " was granted no fence";
            if (before && c.first_fence <= before->last_fence)
                return "client " + std::to_string(c.client) + " was granted fence " + std::to_string(c.first_fence) +
                       " after client " + std::to_string(before->client) + " had " + std::to_string(before->last_fence);
            before = &c;
        }
        return {};
    }
};

}  // namespace holdfast::test
