// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/memory/data.hpp>
#include <holdfast/quorum/answer.hpp>
#include <holdfast/quorum/node_group.hpp>

#include <chrono>
#include <system_error>

namespace holdfast::inline HOLDFAST_ABI::memory {

/// The leases are one node. How long it has to answer is said for each request; see `request_fault`.
inline quorum::node_group const one_node{.size = 1, .timeout = std::chrono::hours{1}};

inline constexpr auto never = boot_clock::time_point::max();

[[nodiscard]] inline quorum::answer not_asked() { return quorum::answer::not_sent(make_error_code(errc::unavailable)); }

/// Returns: when the answer to a request that is sent at `sent` comes.
[[nodiscard]] inline boot_clock::time_point arrival(request_fault const& f, boot_clock::time_point sent) noexcept
{
    return f.answer_is_lost ? never : sent + f.delay;
}

[[nodiscard]] inline failure explained(std::error_code why)
{
    return {why, why == errc::unavailable ? "the store in memory was told to be so" : ""};
}

}  // namespace holdfast::memory
