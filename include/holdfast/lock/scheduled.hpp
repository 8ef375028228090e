// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// What the client's thread handles: a held lease, or an asynchronous call.
class scheduled {
public:
    virtual ~scheduled() = default;

    /// Effects: does what is due at `now`, and schedules the next time. Called by the client's thread only, with no
    /// lock held, like the next.
    virtual void on_due(boot_clock::time_point now) noexcept = 0;

    /// Effects: the same, as if everything were due: leases may be lost.
    virtual void on_alarm(boot_clock::time_point now) noexcept { on_due(now); }
};

}  // namespace holdfast::detail
