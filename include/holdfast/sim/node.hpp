// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/clock.hpp>
#include <holdfast/redis/commands.hpp>
#include <holdfast/sim/clock.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

namespace holdfast::sim {

/// A Redis server: what the table at `redis::command` says, on a clock of its own. Its answers are compared with those of a real server.
class node {
public:
    /// What a server knows when it starts.
    enum class memory {
        kept,   ///< everything: every write was on disk
        saved,  ///< what it knew at the last `save`
        lost,   ///< nothing
    };

    explicit node(clock c = {}) : clock_{c} {}

    /// Effects: runs a command when it is `now` in the world. Requires: `running()`.
    redis::answer execute(redis::command const& c, boot_clock::time_point now)
    {
        using enum redis::command::verb;
        auto const t = time(now);
        forget_expired(t);
        auto const& name = c.keys->lock;
        auto const found = keys_.find(name);
        bool const ours = found != keys_.end() && found->second.holds == c.token.view();
        switch (c.what) {
        case acquire:
            if (found != keys_.end() && !ours) return redis::answer::no(time_left(found->second, t));
            if (!ours) grant(c, t);
            return redis::answer::yes(next_fence(c, t));
        case confirm:
            if (!ours) return redis::answer::no();
            if (fence(c.keys->fence) < c.value) write_fence(c, c.value, t);
            return redis::answer::yes();
        case regain:
            if (found != keys_.end() && !ours) return redis::answer::no();
            if (!ours) grant(c, t);
            if (ours) prolong(found->second, c, t);
            return redis::answer::yes();
        case extend:
            if (!ours) return redis::answer::no();
            prolong(found->second, c, t);
            return redis::answer::yes();
        case release:
            if (!ours) return redis::answer::no();
            keys_.erase(found);
            return redis::answer::yes();
        }
        return {};
    }

    /// Effects: sets a key as any client may; without a ttl it does not expire.
    void set(std::string_view key, std::string_view value, std::optional<std::chrono::milliseconds> ttl, boot_clock::time_point now)
    {
        keys_.insert_or_assign(std::string{key}, entry{std::string{value}, ttl ? std::optional{expiry(time(now), *ttl)} : std::nullopt});
    }

    /// Returns: what the key holds; nothing where there is no such key.
    [[nodiscard]] std::optional<std::string> get(std::string_view key, boot_clock::time_point now)
    {
        forget_expired(time(now));
        auto const found = keys_.find(key);
        return found == keys_.end() ? std::nullopt : std::optional{found->second.holds};
    }

    /// Returns: the fence counter of that key; 0 where there is none.
    [[nodiscard]] std::uint64_t fence(std::string_view key) const
    {
        auto const found = fences_.find(key);
        return found == fences_.end() ? 0 : found->second.value;
    }

    /// Returns: what TIME answers, since 1970.
    [[nodiscard]] std::chrono::microseconds time(boot_clock::time_point now) const noexcept
    {
        return wall_at_start_of_world + std::chrono::duration_cast<std::chrono::microseconds>(clock_.at(now).time_since_epoch());
    }

    /// Returns: how long it has run, by its own clock.
    [[nodiscard]] boot_clock::duration uptime(boot_clock::time_point now) const noexcept
    {
        return started_ ? clock_.at(now) - clock_.at(*started_) : boot_clock::duration{std::chrono::hours{24 * 365}};
    }

    [[nodiscard]] bool running() const noexcept { return running_; }

    /// Returns: a number that is another one after every start.
    [[nodiscard]] unsigned incarnation() const noexcept { return incarnation_; }

    void stop() noexcept { running_ = false; }

    void save() { saved_ = {keys_, fences_}; }

    void start(boot_clock::time_point now, memory m)
    {
        if (m == memory::saved) std::tie(keys_, fences_) = saved_;
        if (m == memory::lost) {
            keys_.clear();
            fences_.clear();
        }
        started_ = now;
        ++incarnation_;
        running_ = true;
    }

    /// Effects: until `t` it does nothing; what comes is done then.
    void hang_until(boot_clock::time_point t) noexcept { hung_until_ = std::max(hung_until_, t); }
    [[nodiscard]] boot_clock::time_point hung_until() const noexcept { return hung_until_; }

    /// Returns: how often a key was set for a token.
    [[nodiscard]] std::uint64_t grants() const noexcept { return grants_; }

private:
    struct entry {
        std::string holds;
        std::optional<std::chrono::milliseconds> expires;
    };
    struct counter {
        std::uint64_t value;
        std::chrono::milliseconds expires;
    };
    using microseconds = std::chrono::microseconds;
    using key_table = std::map<std::string, entry, std::less<>>;
    using fence_table = std::map<std::string, counter, std::less<>>;

    static constexpr microseconds wall_at_start_of_world{1'700'000'000'000'000};

    /// Expiry is in whole milliseconds; a key may go up to one early.
    [[nodiscard]] static std::chrono::milliseconds whole(microseconds t) { return std::chrono::floor<std::chrono::milliseconds>(t); }
    [[nodiscard]] static std::chrono::milliseconds expiry(microseconds t, std::chrono::milliseconds ttl) { return whole(t) + ttl; }

    void forget_expired(microseconds t)
    {
        std::erase_if(keys_, [&](auto const& one) { return one.second.expires && *one.second.expires <= whole(t); });
        std::erase_if(fences_, [&](auto const& one) { return one.second.expires <= whole(t); });
    }

    [[nodiscard]] static std::chrono::milliseconds time_left(entry const& e, microseconds t)
    {
        return e.expires ? *e.expires - whole(t) : redis::unknown_time_left;
    }

    void grant(redis::command const& c, microseconds t)
    {
        keys_.insert_or_assign(c.keys->lock, entry{std::string{c.token.view()}, expiry(t, c.ttl)});
        ++grants_;
    }

    static void prolong(entry& e, redis::command const& c, microseconds t)
    {
        e.expires = std::max(e.expires.value_or(std::chrono::milliseconds{0}), expiry(t, c.ttl));
    }

    std::uint64_t next_fence(redis::command const& c, microseconds t)
    {
        auto const clock = static_cast<std::uint64_t>(t.count());
        auto const last = fence(c.keys->fence);
        auto const most = clock + static_cast<std::uint64_t>(c.max_lead.count());
        switch (c.fence) {
        case redis::fence_source::none: return 0;
        case redis::fence_source::clock: return write_fence(c, std::max(last + 1, clock) + c.batch - 1, t);
        case redis::fence_source::counter: break;
        }
        auto const first = last >= c.floor ? last : std::max({clock, c.floor, c.value <= most ? c.value : 0});
        return write_fence(c, first + c.batch, t);
    }

    std::uint64_t write_fence(redis::command const& c, std::uint64_t value, microseconds t)
    {
        fences_.insert_or_assign(c.keys->fence, counter{value, expiry(t, c.fence_lifetime)});
        return value;
    }

    clock clock_;
    bool running_ = true;
    unsigned incarnation_ = 0;
    std::optional<boot_clock::time_point> started_;
    boot_clock::time_point hung_until_{};
    key_table keys_;
    fence_table fences_;
    std::pair<key_table, fence_table> saved_;
    std::uint64_t grants_ = 0;
};

}  // namespace holdfast::sim
