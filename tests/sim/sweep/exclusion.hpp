// SPDX-License-Identifier: MIT
#pragma once

#include "history.hpp"

#include <algorithm>
#include <optional>
#include <string>

namespace holdfast::test {

/// Claims never overlap, but for those that are shared, and none was over when it was granted.
class exclusion {
public:
    /// Returns: what is wrong with a history; nothing where all is well.
    [[nodiscard]] static std::optional<std::string> breach(history claims)
    {
        std::sort(claims.begin(), claims.end(), [](claim const& a, claim const& b) { return a.granted < b.granted; });
        claim const* longest_of_all = nullptr;
        claim const* longest_alone = nullptr;
        for (auto const& c : claims) {
            auto const* const longest = c.shared ? longest_alone : longest_of_all;
            if (c.valid_until <= c.granted)
                return "client " + std::to_string(c.client) + " was granted a lease that was over";
            if (longest && c.granted < longest->over())
                return "client " + std::to_string(c.client) + " was granted the lock while client " +
                       std::to_string(longest->client) + " held it for another " +
                       std::to_string((longest->over() - c.granted).count()) + " ns";
            if (!longest_of_all || longest_of_all->over() < c.over()) longest_of_all = &c;
            if (!c.shared && (!longest_alone || longest_alone->over() < c.over())) longest_alone = &c;
        }
        return {};
    }
};

}  // namespace holdfast::test
