// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/access.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/redis/commands.hpp>
#include <holdfast/redis/error.hpp>
#include <holdfast/sim/clock.hpp>
#include <holdfast/sim/fence_counters.hpp>
#include <holdfast/sim/joint_acquires.hpp>
#include <holdfast/sim/read_phase.hpp>
#include <holdfast/sim/server_memory.hpp>
#include <holdfast/sim/stored_keys.hpp>
#include <holdfast/sim/waiting_lines.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::sim {

/// A Redis server: does what the table at `redis::command` says, with a clock of its own. Its answers are compared with
/// those of a real server.
class node : private server_memory {
public:
    /// What a server knows when it starts.
    enum class memory {
        kept,   ///< everything: every write was on disk
        saved,  ///< what it knew at the last `save`
        lost,   ///< nothing
    };

    explicit node(clock c = {}) : clock_{c} {}

    /// Effects: runs a command at `now` of the world; `call` tells waiters. Requires: `running()`.
    redis::answer execute(redis::command const& c, boot_clock::time_point now, waiting_lines::caller const& call = {})
    {
        using enum redis::command::verb;  // mutant: permits counted by each server
        auto const t = time(now);
        forget_expired(t);
        auto const& name = c.keys->lock;
        auto const found = keys_.find(name);
        if (redis::knows_phase(c)) return execute_in_phase(c, t, call);
        bool const ours = found != keys_.end() && found->second.holds == c.token.view();
        if (auto const no = redis::knows_number(c) ? numbers_.refuses(c, ours, whole(t)) : std::nullopt) return *no;
        operator_answers const told{keys_, t};
        switch (c.what) {
        case acquire:
            // mutant: a reservation that grants
            if (found != keys_.end() && !ours) return refuse(c, time_left(found->second, t), t);
            // mutant: a free lock for whoever comes
            if (!ours && c.use_queue) lines_.call_next_before(c, t, call);
            if (auto const left = !ours && c.use_queue ? lines_.reserved_for_another(name, c.waiter) : std::nullopt)
                return refuse(c, *left - whole(t), t);
            return acquire_with_fence(c, ours, t);
        case confirm: return ours && fences_.raise(c, t) ? redis::answer::yes() : redis::answer::no();
        case reacquire:
            if (found != keys_.end() && !ours) return redis::answer::no();  // mutant: a lost vote taken from another
            if (!ours) grant(c, t);
            if (ours) prolong(found->second, c, t);
            return answer_to_renewal(ours && found->second.release_requested);
        case extend:
            if (!ours) return redis::answer::no();  // mutant: extend true on a missing key, extend without compare
            prolong(found->second, c, t);
            return answer_to_renewal(found->second.release_requested);
        case release:
        case leave:
            if (c.use_queue && c.waiter)
                c.score != 0 ? static_cast<void>(lines_.enter(c, t)) : lines_.leave(name, c.waiter);
            if (!ours && found != keys_.end()) return redis::answer::no();  // mutant: delete without compare
            if (!ours && !c.waiter) return redis::answer::no();
            if (found != keys_.end()) keys_.erase(found);
            if (c.use_queue) lines_.call_next(c.keys, whole(t), call);
            return redis::answer::yes();
        case acquire_all: return acquire_together(c, t);
        case resize: return numbers_.change(c, whole(t)), redis::answer::yes();
        case inspect: return told.inspect(c);
        case request_release: return told.request_release(c);
        case list: return told.list(c);
        case force_release:
            if (found == keys_.end()) return redis::answer::no();
            keys_.erase(found);
            // mutant: a forced release that calls no waiter
            if (c.use_queue) lines_.call_next(c.keys, whole(t), call);
            return redis::answer::yes();
        default: return redis::answer::failed(redis::errc::protocol_error);  // a count is not simulated
        }
    }

    /// Effects: sets a key, as any client may; without a ttl it does not expire.
    void set(std::string_view key, std::string_view value, std::optional<std::chrono::milliseconds> ttl,
             boot_clock::time_point now)
    {
        keys_.insert_or_assign(
            std::string{key},
            stored_key{std::string{value}, ttl ? std::optional{expiry(time(now), *ttl)} : std::nullopt});
    }

    /// Returns: what the key holds; nothing if there is no such key.
    [[nodiscard]] std::optional<std::string> get(std::string_view key, boot_clock::time_point now)
    {
        forget_expired(time(now));
        auto const found = keys_.find(key);
        return found == keys_.end() ? std::nullopt : std::optional{found->second.holds};
    }

    /// Effects: another user sets the fence counter, so that it does not expire. Without a value, to what is no number.
    void poison(std::string const& key, std::optional<std::uint64_t> value) { fences_.poison(key, value); }

    /// Returns: the fence counter of that key; 0 if there is none.
    [[nodiscard]] std::uint64_t fence(std::string_view key) const { return fences_.value(key); }

    /// Returns: what TIME answers, since 1970.
    [[nodiscard]] std::chrono::microseconds time(boot_clock::time_point now) const noexcept
    {
        return wall_at_start_of_world +
               std::chrono::duration_cast<std::chrono::microseconds>(clock_.at(now).time_since_epoch());
    }

    /// Returns: how long it has run, by its own clock.
    [[nodiscard]] boot_clock::duration uptime(boot_clock::time_point now) const noexcept
    {
        return started_ ? clock_.at(now) - clock_.at(*started_) : boot_clock::duration{std::chrono::hours{24 * 365}};
    }

    [[nodiscard]] bool running() const noexcept { return running_; }

    /// Returns: a number that is different after every start.
    [[nodiscard]] unsigned incarnation() const noexcept { return incarnation_; }

    void stop() noexcept { running_ = false; }

    void save() { saved_ = *this; }

    void start(boot_clock::time_point now, memory m)
    {
        if (m == memory::saved) static_cast<server_memory&>(*this) = saved_;
        if (m == memory::lost) static_cast<server_memory&>(*this) = {};
        started_ = now;
        ++incarnation_;
        running_ = true;
    }

    /// Effects: until `t` it does nothing; what comes meanwhile is done then.
    void hang_until(boot_clock::time_point t) noexcept { hung_until_ = std::max(hung_until_, t); }
    [[nodiscard]] boot_clock::time_point hung_until() const noexcept { return hung_until_; }

    /// Returns: how often a key was set for a token.
    [[nodiscard]] std::uint64_t grants() const noexcept { return grants_; }

private:
    using microseconds = std::chrono::microseconds;

    static constexpr microseconds wall_at_start_of_world{1'700'000'000'000'000};

    /// Expiry is in whole milliseconds; a key may go up to one early.
    [[nodiscard]] static std::chrono::milliseconds whole(microseconds t)
    {
        return std::chrono::floor<std::chrono::milliseconds>(t);
    }
    [[nodiscard]] static std::chrono::milliseconds expiry(microseconds t, std::chrono::milliseconds ttl)
    {
        return fence_counters::expiry(t, ttl);
    }

    void forget_expired(microseconds t) { forget_until(whole(t)); }

    /// Returns: yes to a renewal of a holder that is asked to release the lock, or not.
    [[nodiscard]] static redis::answer answer_to_renewal(bool release_requested)
    {
        auto yes = redis::answer::yes();
        yes.release_requested = release_requested;
        return yes;
    }

    [[nodiscard]] static std::chrono::milliseconds time_left(stored_key const& e, microseconds t)
    {
        return e.expires ? *e.expires - whole(t) : redis::unknown_time_left;
    }

    /// Effects: the waiter of `c` is in line. Returns: no, for `left` more.
    redis::answer refuse(redis::command const& c, std::chrono::milliseconds left, microseconds t)
    {
        auto no = redis::answer::no(left);
        if (c.use_queue) lines_.end_reservation(c.keys->lock, c.waiter);
        no.in_line = redis::gets_in_line(c);
        if (!no.in_line) return no;
        auto const ahead = static_cast<int>(lines_.enter(c, t));
        if (left.count() >= 0) no.time_left += std::chrono::milliseconds{4 * ahead};
        return no;
    }

    /// Effects: as `execute`, for a command that knows of readers.
    redis::answer execute_in_phase(redis::command const& c, microseconds t, waiting_lines::caller const& call)
    {
        using enum redis::command::verb;
        auto& phase = phases_[c.keys->lock];
        auto const found = keys_.find(c.keys->lock);
        auto const value = found == keys_.end() ? std::string{} : found->second.holds;
        bool const shared = redis::mode_of(c) == access::shared;
        bool const ours = shared ? phase.reads(c, value) : value == c.token.view();
        switch (c.what) {
        case acquire: {
            auto const left = found == keys_.end() ? std::chrono::milliseconds{0} : time_left(found->second, t);
            auto const refused = ours ? std::nullopt : phase.refuses(c, value, left, whole(t));
            return refused ? redis::answer::no(*refused) : acquire_with_fence(c, ours && !shared, t);
        }
        case confirm: return ours && fences_.raise(c, t) ? redis::answer::yes() : redis::answer::no();
        case reacquire:
        case extend:
            if (!ours && (c.what == extend || !(value.empty() || value == read_phase::reserved)))
                return redis::answer::no();
            grant(c, t);
            return redis::answer::yes();
        case release:
        case leave: break;
        default: return {};  // what operators ask is not simulated
        }
        if (shared) phase.leave(c, value);
        if (!ours) return redis::answer::no();  // mutant: a release that frees what is another's
        auto const last = shared ? phase.last() : phase.end_write(c, whole(t));
        if (last && (!shared || value == read_phase::reserved))
            found->second = {std::string{read_phase::reserved}, last};
        else if (!last && (!shared || value == read_phase::reserved))
            keys_.erase(found);
        if (!last && c.use_queue) lines_.call_next(c.keys, whole(t), call);
        return redis::answer::yes();
    }

    void grant(redis::command const& c, microseconds t)
    {
        if (redis::knows_phase(c)) {
            auto& phase = phases_[c.keys->lock];
            auto& key = keys_[c.keys->lock];
            if (redis::mode_of(c) == access::shared) {
                auto const last = phase.join(c, key.holds, whole(t));
                if (key.holds.empty()) key = {std::string{read_phase::reserved}, last};
                if (key.expires) key.expires = std::max(*key.expires, last);
                ++grants_;
                return;
            }
            phase.taken(c, key.holds);
            auto const before = key.holds.empty() ? std::nullopt : key.expires;
            key = {std::string{c.token.view()},
                   std::max(expiry(t, c.ttl), before.value_or(std::chrono::milliseconds{0}))};
            ++grants_;
            return;
        }
        keys_.insert_or_assign(c.keys->lock, stored_key{std::string{c.token.view()}, expiry(t, c.ttl), c.use_holder});
        ++grants_;
    }

    static void prolong(stored_key& e, redis::command const& c, microseconds t)
    {
        e.expires = std::max(e.expires.value_or(std::chrono::milliseconds{0}), expiry(t, c.ttl));
    }

    redis::answer acquire_together(redis::command const& c, microseconds t)
    {
        joint_acquires all{c};
        for (auto const& one : all.each()) {
            auto const found = keys_.find(one.keys->lock);
            bool const taken = found != keys_.end();
            // mutant: several locks granted although one of them is held
            if (taken || lines_.wanted(one.keys->lock) || !fences_.usable(one, t))
                return all.no(one, taken ? time_left(found->second, t) : std::chrono::milliseconds{0});
        }
        for (auto const& one : all.each()) all.granted(acquire_with_fence(one, false, t).fence);
        return all.yes();
    }

    redis::answer acquire_with_fence(redis::command const& c, bool ours, microseconds t)
    {
        auto got = fences_.draw(c, t);
        if (got.what != redis::answer::kind::applied) return got;
        if (!ours) grant(c, t);
        if (c.use_queue) lines_.leave(c.keys->lock, c.waiter);
        got.in_line = redis::gets_in_line(c);
        return got;
    }

    clock clock_;
    bool running_ = true;
    unsigned incarnation_ = 0;
    std::optional<boot_clock::time_point> started_;
    boot_clock::time_point hung_until_{};
    server_memory saved_;
    std::uint64_t grants_ = 0;  // mutant: permits counted by each server
};

}  // namespace holdfast::sim
