// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/clock.hpp>

namespace holdfast::detail {

/// Something that a keeper looks after: a held lease.
class kept {
public:
    virtual ~kept() = default;

    /// Effects: does what is due at `now`, and schedules the next time; `time_point::max()` after an alarm. Called in the keeper's thread
    /// only, with no lock held.
    /// Returns: whether it began a renewal, for which the keeper then calls `finish_renewal`.
    virtual bool on_due(boot_clock::time_point now) noexcept = 0;

    /// Effects: waits for the renewal that `on_due` began, until `t`, and acts on its result.
    /// Returns: whether it has ended.
    virtual bool finish_renewal(boot_clock::time_point t) noexcept = 0;
};

}  // namespace holdfast::detail
