// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/options.hpp>
#include <holdfast/core/random.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace holdfast::inline HOLDFAST_ABI::quorum {

/// How long a waiter waits before it asks again, at random, so that contenders miss each other. Reads no clock.
///
/// | the last round             | the pause |
/// |----------------------------|-----------|
/// | was split, or won too late | up to `retry.first`; twice as much each time, up to 16 times that and `retry.most` |
/// | could not ask a majority   | 5 to 10 ms; twice as much each time, up to 900 ms and `retry.most` |
class attempt_pause {
public:
    attempt_pause(backoff_options const& retry, std::uint64_t seed) : retry_{retry}, jitter_{seed} {}

    /// Effects: notes that this client and others have split the votes of a round. If the window became wider than it
    /// does, contenders that collided would starve: newcomers would be faster.
    void collided() noexcept
    {
        auto const widest = std::min<boot_clock::duration>(16 * retry_.first, retry_.most);
        window_ = std::clamp<boot_clock::duration>(2 * window_, retry_.first, widest);
    }

    /// Effects: notes that a majority could be asked.
    void asked() noexcept { outage_ = first_reconnect; }

    /// Returns: the pause after a round whose votes were split, now or earlier. `round`: how long that took, if those
    /// who contend are to begin so far apart that one can have all nodes before the others.
    [[nodiscard]] boot_clock::duration among_contenders(boot_clock::duration round = {}) noexcept
    {
        return up_to(window_ + 2 * round);
    }

    /// Returns: the pause before the next attempt to reach servers that could not be reached; the next one is longer.
    [[nodiscard]] boot_clock::duration in_outage() noexcept
    {
        auto const pause = about(outage_);
        outage_ = std::min<boot_clock::duration>({2 * outage_, longest_reconnect, retry_.most});
        return pause;
    }

    /// Returns: between half of `d` and `d`.
    [[nodiscard]] boot_clock::duration about(boot_clock::duration d) noexcept { return d / 2 + up_to(d / 2); }

    /// Returns: less than `d`, or 0.
    [[nodiscard]] boot_clock::duration up_to(boot_clock::duration d) noexcept
    {
        auto const drawn = jitter_.below(static_cast<std::uint64_t>(d.count()));
        return boot_clock::duration{static_cast<boot_clock::rep>(drawn)};
    }

private:
    static constexpr std::chrono::milliseconds first_reconnect{10};

    /// An outage lasts up to this much longer for waiters. (Measured with 500 clients and a Redis that is down: at 200
    /// ms they take 28 % of a processor.)
    static constexpr std::chrono::milliseconds longest_reconnect{900};

    backoff_options retry_;
    detail::random_sequence jitter_;
    boot_clock::duration window_{};
    boot_clock::duration outage_ = first_reconnect;
};

}  // namespace holdfast::quorum
