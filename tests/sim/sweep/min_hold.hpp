// SPDX-License-Identifier: MIT
#pragma once

#include "history.hpp"

#include <optional>
#include <string>

namespace holdfast::test {

/// A lock that was released before its `min_hold` was over is granted to no other until then.
class min_hold {
public:
    /// Returns: what is wrong with a history; nothing where all is well.
    [[nodiscard]] static std::optional<std::string> breach(history const& claims)
    {
        for (auto const& c : claims)
            for (auto const& next : claims)
                if (&next != &c && next.granted >= c.granted && next.granted < c.kept_until)
                    return "client " + std::to_string(next.client) + " was granted the lock " +
                           std::to_string((next.granted - c.granted).count()) + " ns after client " +
                           std::to_string(c.client) + ", who was to keep it for " +
                           std::to_string((c.kept_until - c.granted).count()) + " ns";
        return {};
    }
};

}  // namespace holdfast::test
