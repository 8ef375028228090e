// SPDX-License-Identifier: MIT
#pragma once

#include "history.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::test {

/// Neither readers nor writers of a lock starve if nothing goes wrong:
///
/// - A writer that waits keeps out new readers. Some come only in a turn: soon after another writer released the lock.
/// - A writer that waits is not passed by one that began to wait after it.
/// - A reader that waits gets the lock when the next writer releases it. No other writer comes in between.
///
/// A single attempt of a writer is not in the queue, and a hold of one mode that becomes one of the other does not wait:
/// these pass writers that wait, and a reader that becomes a writer ends a turn of readers. A lease that ends without a
/// release begins no turn.
class phase_fairness {
public:
    struct bounds {
        boot_clock::duration arrival{};  ///< until a client that asks is known to wait
        boot_clock::duration turn{};     ///< from a writer's release until the last reader comes in that turn
        std::size_t passed = 0;          ///< how many may pass one that waits, although they should not
    };

    /// Returns: what is wrong with a history and the waits for its lock; nothing if all is well.
    [[nodiscard]] static std::optional<std::string> breach(history const& claims, std::vector<wait> const& waits,
                                                           bounds const& most)
    {
        for (auto const& w : waits) {
            auto const known = w.asked + most.arrival;
            if (known >= w.over) continue;
            std::size_t passed = 0;
            for (auto const& c : claims) {
                if (c.beside || c.granted <= known || c.granted >= w.over) continue;
                if (!(w.shared ? passes_reader(c, claims, known, most.turn)
                               : passes_writer(c, claims, known, most.turn)))
                    continue;
                if (++passed > most.passed)
                    return "client " + std::to_string(w.client) + " waited to " + action(w.shared) + " since " +
                           std::to_string(w.asked.time_since_epoch().count()) + " ns, and client " +
                           std::to_string(c.client) + " was granted the lock to " + action(c.shared) + " at " +
                           std::to_string(c.granted.time_since_epoch().count()) + " ns, as the " +
                           std::to_string(passed) + ". that passed it";
            }
        }
        return {};
    }

private:
    using time_point = boot_clock::time_point;

    [[nodiscard]] static std::string action(bool shared) { return shared ? "read" : "write"; }

    /// Returns: whether a writer had already released the lock while the reader waited.
    [[nodiscard]] static bool passes_reader(claim const& c, history const& claims, time_point known,
                                            boot_clock::duration turn)
    {
        return !c.shared && std::any_of(claims.begin(), claims.end(), [&](claim const& before) {
            return !before.shared && before.given_back() && before.ended >= known && before.ended < c.granted &&
                   !cut_short(before.ended, c.granted, claims, turn);
        });
    }

    /// Returns: whether a reader became a writer in the turn that began when a writer left, and before `next`.
    [[nodiscard]] static bool cut_short(time_point left, time_point next, history const& claims,
                                        boot_clock::duration turn)
    {
        return std::any_of(claims.begin(), claims.end(), [&](claim const& c) {
            return !c.shared && c.beside && c.granted >= left && c.granted <= left + turn && c.granted < next;
        });
    }

    [[nodiscard]] static bool passes_writer(claim const& c, history const& claims, time_point known,
                                            boot_clock::duration turn)
    {
        if (!c.shared) return c.waited && c.asked > known;
        return std::none_of(claims.begin(), claims.end(), [&](claim const& before) {
            return !before.shared && before.given_back() && before.ended <= c.granted &&
                   before.ended + turn >= c.granted;
        });
    }
};

}  // namespace holdfast::test
