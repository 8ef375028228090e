// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/core/options.hpp>

#include <algorithm>
#include <chrono>

namespace holdfast::inline HOLDFAST_ABI::quorum {

/// The longest time that a waiter is remembered.
inline constexpr std::chrono::milliseconds longest_mark{60'000};

/// For how long a node that has refused one mode of a `shared_mutex` remembers that it is waited for. A waiter asks
/// again `retry.most` after the answer at the latest, and that request and the answer before it take `timeout` at most.
/// One that is gone is remembered for three times `retry.most` and that, up to a minute, and none after its deadline. A
/// single attempt does not wait.
///
/// | a node remembers        | so |
/// |-------------------------|----|
/// | that a writer waits     | it refuses new readers |
/// | that a reader waits     | when a writer leaves, readers have their turn: it refuses writers, and no reader |
///
/// That readers wait is forgotten when one of them gets in while no writer waits. Their turn ends when the last of
/// those that came has left, or after `readers_turn`.
[[nodiscard]] inline std::chrono::milliseconds
waiting_mark(acquire_request const& request, std::chrono::milliseconds timeout, boot_clock::time_point now) noexcept
{
    constexpr std::chrono::milliseconds none{0};
    if (request.once) return none;
    auto const most = std::min<std::chrono::milliseconds>(
        3 * request.retry.most + timeout + std::chrono::milliseconds{1}, longest_mark);
    if (request.deadline - now >= most) return most;
    return std::max(none, std::chrono::ceil<std::chrono::milliseconds>(request.deadline - now));
}

/// How long the readers that waited for a writer have, when it leaves, to come before the next one; at most.
inline constexpr std::chrono::milliseconds readers_turn{100};

}  // namespace holdfast::quorum
