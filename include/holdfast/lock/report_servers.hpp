// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/lock/report.hpp>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// Effects: reports the notices of the servers of `store` to `hook`. Called with no lock held, and after all that the
/// lease needs is done: the hook may be slow, and may ask for the lock.
inline void report_servers(lock_store& store, error_hook const& hook) noexcept
{
    if (!hook) return;
    for (auto const& one : store.take_notices()) report(hook, one);
}

}  // namespace holdfast::detail
