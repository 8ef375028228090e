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

    /// Effects: runs that part of a command which it is about when it is `now` in the world. Requires: `running()`.
    redis::answer execute(redis::command const& c, boot_clock::time_point now)
    {
        using enum redis::command::verb;
        auto const t = time(now);
        forget_expired(t);
        auto const& name = c.keys->lock;
        auto const found = keys_.find(name);
        bool const ours = found != keys_.end() && found->second.holds == c.token.view();
        switch (c.what) {
        case take:
            if (found != keys_.end()) return redis::answer::no(redis::unknown_time_left);
            grant(c, t);
            return redis::answer::yes();
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

    /// Effects: runs one part of a command, and adds to `got` what is answered.
    void execute(redis::command const& c, redis::command_part part, boot_clock::time_point now, redis::answer& got)
    {
        switch (part) {
        case redis::command_part::clock: got.clock = time(now); break;
        case redis::command_part::lock: {
            auto const clock = got.clock;
            got = execute(c, now);
            got.clock = clock;
            break;
        }
        case redis::command_part::seed:
            got.seed_refused = !knows_pxat_ && got.what == redis::answer::kind::yes;
            if (knows_pxat_) seed(c, now);
            break;
        case redis::command_part::keep: got.kept = keep(c, now); break;
        case redis::command_part::count: {
            auto const counted = count_on(c, now);
            if (got.what == redis::answer::kind::yes) got.fence = counted;
            break;
        }
        }
    }

    /// Effects: SET NX PXAT of the counter.
    void seed(redis::command const& c, boot_clock::time_point now)
    {
        auto const t = time(now);
        forget_expired(t);
        if (c.seed_until > whole(t)) fences_.try_emplace(c.keys->fence, counter{c.value, c.seed_until});
    }

    /// Effects: PEXPIRE of the counter. Returns: whether there is one.
    bool keep(redis::command const& c, boot_clock::time_point now)
    {
        auto const t = time(now);
        forget_expired(t);
        auto const found = fences_.find(c.keys->fence);
        if (found == fences_.end()) return false;
        found->second.expires = expiry(t, c.fence_lifetime);
        return true;
    }

    /// Effects: it is older than Redis 6.2.
    void forget_pxat() noexcept { knows_pxat_ = false; }

    /// Effects: INCRBY, of which a counter that is missing becomes one that does not expire. Returns: the counter.
    std::uint64_t count_on(redis::command const& c, boot_clock::time_point now)
    {
        forget_expired(time(now));
        return fences_.try_emplace(c.keys->fence, counter{0, std::chrono::milliseconds::max()}).first->second.value += c.batch;
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
        if (last < c.floor || !c.keep_end) return write_fence(c, first + c.batch, t);
        return fences_.at(c.keys->fence).value = first + c.batch;
    }

    std::uint64_t write_fence(redis::command const& c, std::uint64_t value, microseconds t)
    {
        fences_.insert_or_assign(c.keys->fence, counter{value, expiry(t, c.fence_lifetime)});
        return value;
    }

    clock clock_;
    bool running_ = true;
    bool knows_pxat_ = true;
    unsigned incarnation_ = 0;
    std::optional<boot_clock::time_point> started_;
    boot_clock::time_point hung_until_{};
    key_table keys_;
    fence_table fences_;
    std::pair<key_table, fence_table> saved_;
    std::uint64_t grants_ = 0;
};

}  // namespace holdfast::sim
