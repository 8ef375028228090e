// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>

#include <algorithm>
#include <chrono>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// When a client's thread goes on with what its store has left to do and no caller waits for: after a pause, which
/// doubles as long as something is left. Arithmetic only.
class finish_pause {
public:
    static constexpr std::chrono::milliseconds least{450};
    static constexpr std::chrono::seconds longest{10};

    /// Returns: when that is; `time_point::max()` if nothing is left.
    [[nodiscard]] boot_clock::time_point at() const noexcept { return at_; }

    /// Effects: something is left, which came just before `now`.
    void begin(boot_clock::time_point now) noexcept
    {
        pause_ = least;
        at_ = std::min(at_, now + pause_);
    }

    /// Returns: whether it is the time; then nothing is left until `begin` or `go_on`.
    [[nodiscard]] bool take(boot_clock::time_point now) noexcept
    {
        if (now < at_) return false;
        at_ = boot_clock::time_point::max();
        return true;
    }

    /// Effects: something was left when it went on, at `now`.
    void go_on(boot_clock::time_point now) noexcept
    {
        pause_ = std::min<boot_clock::duration>(2 * pause_, longest);
        at_ = std::min(at_, now + pause_);
    }

private:
    boot_clock::time_point at_ = boot_clock::time_point::max();
    boot_clock::duration pause_ = least;
};

}  // namespace holdfast::detail
