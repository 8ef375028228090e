// SPDX-License-Identifier: MIT
#pragma once

#include "history.hpp"
#include "permit_limit.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::test {

/// While one waits, as many permits as it waits for are not free for long.
class permit_idleness {
public:
    /// Returns: what is wrong with a history of `permits`; nothing if during none of `waits`, which ended with a grant,
    /// enough of them were free for more than `most` on end.
    [[nodiscard]] static std::optional<std::string> breach(history const& claims, std::vector<wait> const& waits,
                                                           std::size_t permits, boot_clock::duration most)
    {
        auto const all = permit_limit::steps(claims);
        for (auto const& w : waits) {
            auto const enough = static_cast<int>(permits) - static_cast<int>(w.permits);  // claims of others
            int now = 0;
            auto free_since = boot_clock::time_point{};
            auto const look = [&](boot_clock::time_point until) {
                if (now > enough) return false;
                return std::min(until, w.over) - std::max(free_since, w.asked) > most;
            };
            bool idle = false;
            for (auto const& one : all) {
                if ((idle = look(one.at))) break;
                if (now > enough && now + one.by <= enough) free_since = one.at;
                now += one.by;
                if (one.at >= w.over) break;
            }
            if (idle || look(w.over))
                return "a permit was free for longer than " + std::to_string(most.count()) + " ns while client " +
                       std::to_string(w.client) + " waited, until " + std::to_string(w.over.time_since_epoch().count());
        }
        return {};
    }
};

}  // namespace holdfast::test
