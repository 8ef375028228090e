// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/sim/decision.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace holdfast::test {

/// What is left of a list of decisions when as many as can be are left out, one after the other and in whole stretches,
/// while it still fails.
/// Source: A. Zeller and R. Hildebrandt, "Simplifying and isolating failure-inducing input", 2002 (ddmin, with
/// complements only).
class shrinking {
public:
    using list = std::vector<sim::decision>;

    /// Runs with these decisions alone. Returns: those that came true where it still fails; nothing where it does not.
    using trial = std::function<std::optional<list>(list const&)>;

    /// Returns: a list that still fails, and no more does so when any one of it is left out; or as far as `most` trials
    /// got.
    [[nodiscard]] static list shortest(list failing, trial const& fails, std::size_t most = 5000)
    {
        std::size_t parts = 2;
        while (!failing.empty() && most > 0) {
            parts = std::min(parts, failing.size());
            bool shorter = false;
            for (std::size_t part = 0; part < parts && most > 0; ++part) {
                --most;
                auto const from = failing.size() * part / parts;
                auto const to = failing.size() * (part + 1) / parts;
                auto rest = failing;
                rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(from),
                           rest.begin() + static_cast<std::ptrdiff_t>(to));
                if (auto left = fails(rest)) {
                    failing = std::move(*left);
                    shorter = true;
                    break;
                }
            }
            if (shorter)
                parts = std::max<std::size_t>(parts - 1, 2);
            else if (parts >= failing.size())
                break;
            else
                parts *= 2;
        }
        return failing;
    }
};

}  // namespace holdfast::test
