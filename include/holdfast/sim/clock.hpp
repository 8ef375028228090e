// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>

#include <cstdint>

namespace holdfast::inline HOLDFAST_ABI::sim {

/// The clock of one computer: set ahead of the world's time or behind it, and running a little fast or slow.
struct clock {
    boot_clock::duration ahead{};
    std::int64_t drift_ppm = 0;  ///< parts per million by which it runs fast; negative: slow

    /// Returns: what this clock shows at `world_time`.
    [[nodiscard]] boot_clock::time_point at(boot_clock::time_point world_time) const noexcept
    {
        auto const ticks = world_time.time_since_epoch().count();
        return boot_clock::time_point{boot_clock::duration{ticks + share(ticks, drift_ppm, million)} + ahead};
    }

    /// Returns: the time of the world at which this clock shows `own_time`; `time_point::max()` for that.
    [[nodiscard]] boot_clock::time_point when(boot_clock::time_point own_time) const noexcept
    {
        if (own_time == boot_clock::time_point::max()) return own_time;
        auto const ticks = (own_time - ahead).time_since_epoch().count();
        auto guess = ticks - share(ticks, drift_ppm, million + drift_ppm);
        while (at(boot_clock::time_point{boot_clock::duration{guess}}) < own_time) ++guess;
        return boot_clock::time_point{boot_clock::duration{guess}};
    }

private:
    static constexpr std::int64_t million = 1'000'000;

    /// Returns: `ticks * part / whole`, without overflow.
    [[nodiscard]] static constexpr std::int64_t share(std::int64_t ticks, std::int64_t part,
                                                      std::int64_t whole) noexcept
    {
        return ticks / whole * part + ticks % whole * part / whole;
    }
};

}  // namespace holdfast::sim
