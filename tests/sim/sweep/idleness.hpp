// SPDX-License-Identifier: MIT
#pragma once

#include "history.hpp"

#include <algorithm>
#include <optional>
#include <string>

namespace holdfast::test {

/// A lock that everybody wants does not lie idle for long.
class idleness {
public:
    /// Returns: what is wrong with a history that went from `begin` to `end`; nothing where nobody had the lock for at
    /// most `most` on end.
    [[nodiscard]] static std::optional<std::string> breach(history claims, boot_clock::time_point begin,
                                                           boot_clock::time_point end, boot_clock::duration most)
    {
        std::sort(claims.begin(), claims.end(), [](claim const& a, claim const& b) { return a.granted < b.granted; });
        claims.push_back({.granted = end});
        auto free_since = begin;
        for (auto const& c : claims) {
            if (c.granted - free_since > most)
                return "nobody had the lock for " + std::to_string((c.granted - free_since).count()) + " ns, until " +
                       std::to_string(c.granted.time_since_epoch().count());
            free_since = std::max(free_since, c.over());
        }
        return {};
    }
};

}  // namespace holdfast::test
