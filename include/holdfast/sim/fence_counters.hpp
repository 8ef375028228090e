// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/redis/commands.hpp>
#include <holdfast/redis/error.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::inline HOLDFAST_ABI::sim {

/// The counters of fencing tokens of a simulated server; see `redis::command`. It is told the time in microseconds.
class fence_counters {
public:
    using microseconds = std::chrono::microseconds;

    /// Expiry is in whole milliseconds; a key may go up to one early.
    [[nodiscard]] static std::chrono::milliseconds expiry(microseconds t, std::chrono::milliseconds ttl)
    {
        return std::chrono::floor<std::chrono::milliseconds>(t) + ttl;
    }

    void forget_expired(std::chrono::milliseconds now)
    {
        std::erase_if(fences_, [&](auto const& one) { return one.second.expires <= now; });
    }

    /// Effects: another user sets the counter, so that it does not expire. Without a value, to what is no number.
    void poison(std::string const& key, std::optional<std::uint64_t> value)
    {
        fences_.insert_or_assign(
            key, counter{value.value_or(0), std::chrono::milliseconds::max(), value ? counter::counts : counter::text});
    }

    /// Returns: the counter of that key; 0 if there is none.
    [[nodiscard]] std::uint64_t value(std::string_view key) const
    {
        auto const found = fences_.find(key);
        return found == fences_.end() ? 0 : found->second.value;
    }

    /// Effects: the counter of `c` is no less than its value. Returns: whether it is; not if one of them is foreign.
    bool raise(redis::command const& c, microseconds t)
    {
        // mutant: a fence passed on however far ahead
        if (foreign(c, c.value, t) || !counts(c, t)) return false;
        if (value(c.keys->fence().text()) < c.value) write_fence(c, c.value, t);
        return true;
    }

    /// Returns: whether `c`, an acquire, would count on from its counter.
    [[nodiscard]] bool usable(redis::command const& c, microseconds t) const
    {
        return c.fence == redis::fence_source::none || counts(c, t);
    }

    /// Effects: moves the counter of `c`, an acquire that is granted. Returns: its answer.
    redis::answer draw(redis::command const& c, microseconds t)
    {
        auto const granted = [](std::uint64_t fence, bool replaced) {
            auto got = redis::answer::yes(fence);
            got.fence_replaced = replaced;
            return got;
        };
        // mutant: a reader with the token of the writer before it
        if (c.fence == redis::fence_source::none) return granted(0, false);
        auto const clock = static_cast<std::uint64_t>(t.count());
        auto const found = fences_.find(c.keys->fence().text());
        auto const kept = found == fences_.end() ? counter{} : found->second;
        bool const unread =
            kept.now == counter::text || (kept.now == counter::lost && c.fence == redis::fence_source::clock);
        auto const back = kept.now == counter::lost ? c.max_lead : microseconds{0};
        bool const wrong = unread || foreign(c, kept.value, t + back);
        auto last = wrong ? 0 : kept.value;
        if (c.fence == redis::fence_source::clock)
            return granted(write_fence(c, std::max((wrong ? most(c, t) : last) + 1, clock) + c.batch - 1, t), wrong);

        auto const lead = clock + static_cast<std::uint64_t>(c.max_lead.count());
        bool const guarded = c.max_lead.count() != 0;
        if (wrong && guarded) {
            write_fence(c, most(c, t + c.max_lead), t, counter::lost);  // mutant: a lost fence begun at the clock
            auto got = redis::answer::failed(redis::errc::foreign_fence);
            got.fence_replaced = true;
            return got;
        }
        if (kept.now == counter::lost && guarded && last > lead)
            return redis::answer::failed(redis::errc::foreign_fence);
        if (last < c.floor) last = std::max({clock, c.floor, c.value <= lead ? c.value : 0});
        // mutant: readers whose tokens do not count
        return granted(write_fence(c, last + c.batch, t), wrong);
    }

private:
    struct counter {
        enum state : std::uint8_t {
            counts,
            lost,  ///< it was foreign; the value is the most that it can have been before
            text,  ///< no number
        };
        std::uint64_t value = 0;
        std::chrono::milliseconds expires{};
        state now = counts;
    };

    /// Returns: whether a fence is further ahead of the clock than any that holdfast writes.
    [[nodiscard]] static bool foreign(redis::command const& c, std::uint64_t value, microseconds t) noexcept
    {
        bool const by_clock = c.fence == redis::fence_source::clock;
        auto const burst = static_cast<std::uint64_t>(by_clock ? redis::fence_burst.count() : 0);
        return value > most(c, t) + burst;  // mutant: a fence believed however far ahead
    }

    /// Returns: whether the fence is missing, or a number that is not foreign.
    [[nodiscard]] bool counts(redis::command const& c, microseconds t) const
    {
        auto const found = fences_.find(c.keys->fence().text());
        return found == fences_.end() || (found->second.now == counter::counts && !foreign(c, found->second.value, t));
    }

    /// Returns: the greatest fence that holdfast writes.
    [[nodiscard]] static std::uint64_t most(redis::command const& c, microseconds t) noexcept
    {
        return static_cast<std::uint64_t>((t + redis::fence_bound(c)).count());
    }

    std::uint64_t write_fence(redis::command const& c, std::uint64_t value, microseconds t,
                              counter::state now = counter::counts)
    {
        microseconds const lead{c.fence == redis::fence_source::clock ? static_cast<std::int64_t>(value) - t.count()
                                                                      : 0};
        fences_.insert_or_assign(c.keys->fence().text(),
                                 counter{value, expiry(t + std::max(lead, microseconds{0}), c.fence_lifetime), now});
        return value;
    }

    std::map<std::string, counter, std::less<>> fences_;
};

}  // namespace holdfast::sim
