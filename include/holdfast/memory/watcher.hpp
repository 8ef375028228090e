// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>

namespace holdfast::inline HOLDFAST_ABI::memory {

/// Waits for a lock of a store. It outlives what it wakes.
class watcher {
public:
    watcher() = default;
    watcher(watcher const&) = delete;
    watcher& operator=(watcher const&) = delete;
    virtual ~watcher() = default;

    /// Called when the lock may be free, with no lock of the store held.
    virtual void wake() noexcept = 0;

    /// Called when it waits no longer, with no lock of the store held. Waits for a `wake()` that runs meanwhile; a
    /// later one has no effect.
    virtual void forget() noexcept = 0;
};

}  // namespace holdfast::memory
