// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>

#include <chrono>

namespace holdfast::inline HOLDFAST_ABI {

/// Returns: how far the clocks of a client and a server may drift apart during `ttl`: 1 % of it and 2 ms.
[[nodiscard]] constexpr boot_clock::duration drift(std::chrono::milliseconds ttl) noexcept
{
    return boot_clock::duration{ttl} / 100 + std::chrono::milliseconds{2};  // mutant: no drift margin
}

/// Returns: until when a lease is exclusive that was asked for at `sent`, before the first byte left, and granted for
/// `ttl`. No server can grant the lock to another before that.
/// Source: the validity time of "Distributed Locks with Redis" (redis.io), with the drift always counted.
[[nodiscard]] constexpr boot_clock::time_point valid_until(boot_clock::time_point sent,
                                                           std::chrono::milliseconds ttl) noexcept
{
    return sent + ttl - drift(ttl);
}

/// Returns: when a lease of `ttl` was asked for, if it is valid until `t`.
[[nodiscard]] constexpr boot_clock::time_point sent_at(boot_clock::time_point t, std::chrono::milliseconds ttl) noexcept
{
    return t + drift(ttl) - ttl;
}

/// Returns: how long before `valid_until` a lease that was not renewed is announced as lost: the holder needs this time
/// to be told and to stop. It is as long as the drift.
[[nodiscard]] constexpr boot_clock::duration announcement_margin(std::chrono::milliseconds ttl) noexcept
{
    return drift(ttl);
}

/// Returns: whether a lease of `ttl` can be used at all: drift and margin leave some of it.
[[nodiscard]] constexpr bool can_be_held(std::chrono::milliseconds ttl) noexcept
{
    return drift(ttl) + announcement_margin(ttl) < ttl;
}

}  // namespace holdfast
