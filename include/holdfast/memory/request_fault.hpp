// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/result.hpp>

#include <chrono>
#include <system_error>

namespace holdfast::inline HOLDFAST_ABI::memory {

/// What goes wrong with one request.
struct request_fault {
    static constexpr auto never = boot_clock::time_point::max();

    bool unavailable = false;
    bool answer_is_lost = false;
    std::chrono::milliseconds delay{};
    std::chrono::milliseconds operation_timeout{};

    /// Returns: when the answer to a request that is sent at `sent` comes.
    [[nodiscard]] boot_clock::time_point arrival(boot_clock::time_point sent) const noexcept
    {
        return answer_is_lost ? never : sent + delay;
    }
};

[[nodiscard]] inline failure explained(std::error_code why)
{
    return {why, why == errc::unavailable ? "the store in memory was told to be so" : ""};
}

}  // namespace holdfast::memory
