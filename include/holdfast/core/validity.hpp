// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/clock.hpp>

#include <chrono>

namespace holdfast {

/// Returns: how far the clocks of a client and a server may drift apart during `ttl`: 1 % of it and 2 ms.
[[nodiscard]] constexpr boot_clock::duration drift(std::chrono::milliseconds ttl) noexcept
{
    return boot_clock::duration{ttl} / 100 + std::chrono::milliseconds{2};
}

/// Returns: until when a lease is exclusive that was asked for at `sent`, before the first byte left, and granted for `ttl`. No
/// server can grant the lock to another before that.
/// Source: the validity time of "Distributed Locks with Redis" (redis.io), with the drift counted always.
[[nodiscard]] constexpr boot_clock::time_point valid_until(boot_clock::time_point sent, std::chrono::milliseconds ttl) noexcept
{
    return sent + ttl - drift(ttl);
}

/// Returns: how long before `valid_until` a lease that was not renewed is announced as lost: the time in which the holder is told
/// and stops. As long as the drift.
[[nodiscard]] constexpr boot_clock::duration announcement_margin(std::chrono::milliseconds ttl) noexcept { return drift(ttl); }

/// Returns: whether a lease of `ttl` can be used at all: drift and margin leave some of it.
[[nodiscard]] constexpr bool can_be_held(std::chrono::milliseconds ttl) noexcept { return drift(ttl) + announcement_margin(ttl) < ttl; }

}  // namespace holdfast
