// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// What the client's thread handles: a held lease, or an asynchronous call.
class scheduled {
public:
    virtual ~scheduled() = default;

    /// Effects: does what is due at `now`, and schedules the next time. `alarmed`: leases may be lost, as if everything
    /// were due. Called by the client's thread only, with no lock held.
    virtual void on_due(boot_clock::time_point now, bool alarmed) noexcept = 0;
};

}  // namespace holdfast::detail
