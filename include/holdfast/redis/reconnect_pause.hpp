// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>

#include <algorithm>
#include <chrono>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// When a server may be connected to again. Reads no clock.
///
/// | a connection                                             | the next one may begin                         |
/// |----------------------------------------------------------|------------------------------------------------|
/// | was of use: the server answered, not only with errors    | at once                                        |
/// | was of no use                                            | after 5 ms; in a row twice as long, to 450 ms  |
/// | broke the protocol, more than 10 s after it began        | as above                                       |
/// | broke the protocol sooner, as the one before it did, too | after 5 ms; in a row twice as long, to 10 s    |
class reconnect_pause {
public:
    enum class end { refused, lost };

    static constexpr std::chrono::milliseconds first{5};
    static constexpr std::chrono::milliseconds longest{450};
    static constexpr std::chrono::milliseconds longest_distrust{10'000};

    /// Returns: whether a connection may begin.
    [[nodiscard]] bool over(boot_clock::time_point now) const noexcept { return now >= until_; }

    /// Effects: notes that one begins.
    void begin(boot_clock::time_point now) noexcept { began_ = now; }

    /// Effects: notes that the connection ended: `lost` if it was of use.
    void ended(end how, boot_clock::time_point now) noexcept
    {
        pause_ = how == end::lost ? boot_clock::duration::zero()
                                  : std::clamp<boot_clock::duration>(2 * pause_, first, longest);
        until_ = now + pause_;
    }

    /// Effects: notes that the connection ended because it broke the protocol.
    void spoilt(end how, boot_clock::time_point now) noexcept
    {
        ended(how, now);
        auto const owed = now - began_ < longest_distrust ? distrust_ : boot_clock::duration::zero();
        distrust_ = std::clamp<boot_clock::duration>(2 * owed, first, longest_distrust);
        until_ = now + std::max(pause_, owed);
    }

    /// Effects: the pause began earlier by `d`.
    void put_back(boot_clock::duration d) noexcept { until_ -= d; }

private:
    boot_clock::time_point began_{};
    boot_clock::time_point until_{};
    boot_clock::duration pause_{};
    boot_clock::duration distrust_{};  // the pause if the next one breaks the protocol soon
};

}  // namespace holdfast::redis
