// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/core/operation.hpp>
#include <holdfast/core/parker.hpp>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// The completion of an operation that one thread waits for.
class awaited : public completion {
public:
    awaited() = default;
    awaited(awaited const&) = delete;
    awaited& operator=(awaited const&) = delete;
    virtual ~awaited() = default;

    /// Effects: waits until the operation has ended; lends the thread to `store` meanwhile. Requires: the operation was
    /// started, and is on `key`.
    void wait(lock_store& store, shared_key const& key)
    {
        while (store.drive(key, parker_, boot_clock::time_point::max()) == 0) {
        }
    }

    void complete() noexcept override { parker_.unpark(); }

private:
    parker parker_;
};

}  // namespace holdfast::detail
