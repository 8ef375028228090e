// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/redis/commands.hpp>
#include <holdfast/redis/error.hpp>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>

namespace holdfast::inline HOLDFAST_ABI::sim {

/// The numbers of permits that a simulated server keeps; see `redis::command`. `now` and all times are in milliseconds
/// of the server's clock.
class permit_counts {
public:
    using milliseconds = std::chrono::milliseconds;

    /// Effects: takes in the number that `c` says, unless another one is in use; a lease that is `ours` keeps that one.
    /// Returns: the answer to `c`, if it is refused for that.
    [[nodiscard]] std::optional<redis::answer> refuses(redis::command const& c, bool ours, milliseconds now)
    {
        std::erase_if(all_, [now](auto const& one) { return one.second.expires <= now; });
        auto const lasts = now + c.ttl + std::chrono::seconds{1};
        auto& one = all_.try_emplace(semaphore_of(c), count{c.keys->permits(), lasts}).first->second;
        bool const other = one.permits != c.keys->permits();
        // mutant: a number of permits that ends before those that are held
        if (!other || ours) one.expires = std::max(one.expires, lasts);
        // mutant: a number of permits that was changed not compared
        if (!other || ours) return std::nullopt;
        if (c.what == redis::command::verb::acquire) return redis::answer::failed(redis::errc::other_number);
        return redis::answer::no();
    }

    /// Effects: the number in use is that of `c`.
    void change(redis::command const& c, milliseconds now)
    {
        auto& one = all_[semaphore_of(c)];
        one = {c.keys->permits(), std::max(one.expires, now + c.ttl + std::chrono::seconds{1})};
    }

private:
    struct count {
        unsigned permits = 0;
        milliseconds expires{};
    };

    [[nodiscard]] static std::string semaphore_of(redis::command const& c)
    {
        return c.keys->lock.substr(0, c.keys->lock.rfind('#'));
    }

    std::map<std::string, count> all_;
};

}  // namespace holdfast::sim
