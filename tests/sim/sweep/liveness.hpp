// SPDX-License-Identifier: MIT
#pragma once

#include "history.hpp"

#include <algorithm>
#include <optional>
#include <string>

namespace holdfast::test {

/// When nothing goes wrong any more, the lock is soon had by somebody who asks for it, whoever died with it in his
/// hands.
class liveness {
public:
    /// Returns: what is wrong with a history in which client `heir` asks for the lock since `asked`, and nothing goes
    /// wrong since `quiet`; nothing where it was granted at most `most` after that and after the end of the last claim
    /// before.
    [[nodiscard]] static std::optional<std::string> breach(history const& claims, unsigned heir,
                                                           boot_clock::time_point asked, boot_clock::time_point quiet,
                                                           boot_clock::duration most)
    {
        auto const got = std::find_if(claims.begin(), claims.end(), [&](claim const& c) { return c.client == heir; });
        if (got == claims.end())
            return "client " + std::to_string(heir) +
                   " was never granted the lock, although nothing went wrong any more";
        auto since = std::max(asked, quiet);
        for (auto const& c : claims)
            if (c.granted < got->granted) since = std::max(since, c.over());
        if (got->granted - since <= most) return {};
        return "client " + std::to_string(heir) + " was granted the lock " +
               std::to_string((got->granted - since).count()) + " ns after it was free and nothing went wrong any more";
    }
};

}  // namespace holdfast::test
