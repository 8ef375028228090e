// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/lock_holder.hpp>
#include <holdfast/core/name.hpp>
#include <holdfast/core/options.hpp>
#include <holdfast/core/result.hpp>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::inline HOLDFAST_ABI {

/// The options of an `election_observer`. An aggregate.
struct election_observer_options {
    /// Called with the leader when the observation begins, and then with each change: another leader, a further term of
    /// the same one, or nothing: there is no leader. Must not throw: that ends the program.
    std::function<void(std::optional<lock_holder> const& leader)> on_change{};

    /// Called when the store cannot say who leads: what was told last may no longer be true. It is called once for each
    /// code, until the store answers or another code comes; when it answers, once more, with `e.over()`. What the
    /// function throws is dropped.
    std::function<void(error const&)> on_error{};

    /// How long the observer waits after an answer before it asks again. Short: each observer asks the servers that
    /// often. Long: a change is told that much later, and a term that is shorter is not told at all.
    std::chrono::milliseconds interval{1000};
};

/// Effects: none if `options` can be used. Throws: `error` (`misconfigured`) otherwise, naming the field.
inline void check_options(std::string_view lock_name, election_observer_options const& options)
{
    if (options.interval.count() > 0 && options.interval <= longest_ttl) return;
    throw detail::error_of(lock_name, {make_error_code(errc::misconfigured),
                                       "election_observer: interval is " + std::to_string(options.interval.count()) +
                                           " ms; it must be positive, and at most a day"});
}

}  // namespace holdfast
