// SPDX-License-Identifier: MIT
#pragma once

#include "history.hpp"

#include <optional>
#include <string>

namespace holdfast::test {

/// One who is told that the lease has ended has time to stop: no other is granted the lock before that is over.
class stop_margin {
public:
    /// Returns: what is wrong with a history; nothing where all is well.
    [[nodiscard]] static std::optional<std::string> breach(history const& claims)
    {
        for (auto const& c : claims)
            for (auto const& next : claims) {
                bool const together = c.shared && next.shared;
                if (&next == &c || together || next.granted < c.granted || next.granted >= c.stops_by) continue;
                return "client " + std::to_string(next.client) + " was granted the lock, and client " +
                       std::to_string(c.client) + ", whose lease has ended, still had " +
                       std::to_string((c.stops_by - next.granted).count()) + " ns to stop";
            }
        return {};
    }
};

}  // namespace holdfast::test
