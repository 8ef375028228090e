// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/parker.hpp>

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::io {

/// Effects: `ppoll`, for `d` at most, and not longer than a thread sleeps at a time (`parker::longest_nap`). Returns:
/// what `ppoll` returns; unless that is positive, nothing in `polled` has an event.
inline int poll_for(std::vector<pollfd>& polled, boot_clock::duration d) noexcept
{
    d = std::clamp<boot_clock::duration>(d, boot_clock::duration::zero(), detail::parker::longest_nap);
    auto const whole = std::chrono::duration_cast<std::chrono::seconds>(d);
    timespec const timeout{.tv_sec = whole.count(), .tv_nsec = (d - whole).count()};
    auto const ready = ::ppoll(polled.data(), polled.size(), &timeout, nullptr);
    if (ready <= 0)
        for (auto& one : polled) one.revents = 0;
    return ready;
}

}  // namespace holdfast::io
