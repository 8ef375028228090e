// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/options.hpp>
#include <holdfast/core/random.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <system_error>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// How long a candidate waits before it campaigns again. Reads no clock.
///
/// | the last campaign            | the pause                                                      |
/// |------------------------------|----------------------------------------------------------------|
/// | led to a term                | `after_term`                                                   |
/// | failed                       | `retry.first`; in a row twice as long each time, to `retry.most` |
/// | failed after a long time     | `retry.first`: it was well meanwhile                           |
/// | failed with `misconfigured`  | `retry.most`                                                   |
///
/// After a failure it is shorter by a random part, up to half: after an outage candidates do not return all at once.
class campaign_pause {
public:
    campaign_pause(std::chrono::milliseconds after_term, backoff_options const& retry, std::uint64_t seed)
        : after_term_{after_term}, retry_{retry}, next_{retry.first}, jitter_{seed}
    {
    }

    [[nodiscard]] boot_clock::duration after_term() noexcept
    {
        next_ = retry_.first;
        return after_term_;
    }

    /// `lasted`: how long the campaign took that failed.
    [[nodiscard]] boot_clock::duration after_failure(std::error_code why, boot_clock::duration lasted) noexcept
    {
        if (lasted > in_a_row * boot_clock::duration{retry_.most}) next_ = retry_.first;
        auto const longest = why == errc::misconfigured ? boot_clock::duration{retry_.most} : next_;
        next_ = std::min<boot_clock::duration>(2 * next_, retry_.most);
        auto const less = jitter_.below(static_cast<std::uint64_t>(longest.count()) / 2);
        return longest - boot_clock::duration{static_cast<boot_clock::rep>(less)};
    }

private:
    /// A campaign that lasts for so many of the longest pauses is none of several that fail in a row.
    static constexpr int in_a_row = 10;

    std::chrono::milliseconds const after_term_;
    backoff_options const retry_;
    boot_clock::duration next_;
    random_sequence jitter_;
};

}  // namespace holdfast::detail
