// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/redis/commands.hpp>
#include <holdfast/redis/error.hpp>

#include <algorithm>
#include <optional>

namespace holdfast::inline HOLDFAST_ABI::sim {

/// Why a simulated server does not do what it is asked for, though it runs.
class refusals {
public:
    /// Effects: until `t` it answers with `why`, as a server does that reads its data (`loading`), runs a long script
    /// (`busy`), is a replica for a while (`read_only`), or has no memory for more keys (`out_of_memory`).
    void refuse_until(boot_clock::time_point t, redis::errc why) noexcept
    {
        until_ = std::max(until_, t);
        why_ = why;
    }

    /// Effects: it was started anew.
    void restart() noexcept { until_ = {}; }

    /// Returns: what it answers to `c` at `now` instead of doing it; nothing if it does it.
    [[nodiscard]] std::optional<redis::answer> refuses(redis::command const& c, boot_clock::time_point now) const
    {
        if (now < until_ && concerns(c)) return redis::answer::failed(why_);
        return std::nullopt;
    }

private:
    /// Returns: whether that is refused, too. A server without memory does what needs none.
    [[nodiscard]] bool concerns(redis::command const& c) const noexcept
    {
        return why_ != redis::errc::out_of_memory || redis::asks_for_vote(c) || c.what == redis::command::verb::confirm;
    }

    boot_clock::time_point until_{};
    redis::errc why_ = redis::errc::loading;
};

}  // namespace holdfast::sim
