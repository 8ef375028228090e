// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/redis/commands.hpp>
#include <holdfast/redis/error.hpp>
#include <holdfast/sim/clock.hpp>
#include <holdfast/sim/fence_counters.hpp>
#include <holdfast/sim/joint_acquires.hpp>
#include <holdfast/sim/lock_records.hpp>
#include <holdfast/sim/read_phase.hpp>
#include <holdfast/sim/refusals.hpp>
#include <holdfast/sim/server_memory.hpp>
#include <holdfast/sim/stored_keys.hpp>
#include <holdfast/sim/waiting_lines.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::inline HOLDFAST_ABI::sim {

/// A Redis server: does what the table at `redis::command` says, with a clock of its own. Its answers are compared with
/// those of a real server.
class node : private lock_records, private refusals {
public:
    using refusals::forget_scripts;
    using refusals::permit_queues;
    using refusals::refuse_queues;
    using refusals::refuse_until;

    /// What a server knows when it starts.
    enum class memory {
        kept,   ///< everything: every write was on disk
        saved,  ///< what it knew at the last `save`
        lost,   ///< nothing
    };

    explicit node(clock c = {}) : clock_{c} {}

    /// Effects: runs a command that came `from` there at `now` of the world; `call` tells waiters. Requires:
    /// `running()`.
    redis::answer execute(redis::command const& c, boot_clock::time_point now, waiting_lines::caller const& call = {},
                          sender const& from = {})
    {
        using enum redis::command::verb;  // mutant: permits counted by each server
        auto const t = time(now);
        told_all_ = false;
        if (auto const no = refuses(c, from, now)) return *no;
        forget_expired(t);
        auto const& name = c.keys->lock;
        auto const found = keys_.find(name);
        if (changes_phase(c)) return execute_in_phase(c, t, call);
        bool const ours = found != keys_.end() && found->second.holds == c.token.view();
        if (auto const no = redis::knows_number(c) ? numbers_.refuses(c, ours, whole(t)) : std::nullopt) return *no;
        if (redis::knows_phase(c)) phases_[name].renewed(c, expiry(t, c.ttl));
        operator_answers const told{keys_, phases_, t};
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
            told_all_ = true;
            return redis::answer::yes();
        case acquire_all: return acquire_together(c, t);
        case resize: return numbers_.change(c, whole(t)), redis::answer::yes();
        case inspect: return told.inspect(c);
        case request_release: return told.request_release(c);
        case list: return told.list(c);
        case force_release:
            if (found == keys_.end()) return redis::answer::no();
            keys_.erase(found);
            told_all_ = true;
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

    /// Effects: a key is deleted, as any client may, or as a server that evicts keys does. No waiter is called.
    void erase(std::string const& key) { keys_.erase(key); }

    /// Returns: what the key holds; nothing if there is no such key.
    [[nodiscard]] std::optional<std::string> get(std::string_view key, boot_clock::time_point now)
    {
        forget_expired(time(now));
        auto const found = keys_.find(key);
        return found == keys_.end() ? std::nullopt : std::optional{found->second.holds};
    }

    /// Returns: how many are in the queue of the lock.
    [[nodiscard]] std::size_t waiting(std::string const& lock) const { return lines_.length(lock); }

    /// Effects: another user sets the fence counter, so that it does not expire. Without a value, to what is no number.
    void poison(std::string const& key, std::optional<std::uint64_t> value) { fences_.poison(key, value); }

    /// Returns: the fence counter of that key; 0 if there is none.
    [[nodiscard]] std::uint64_t fence(std::string_view key) const { return fences_.value(key); }

    /// Returns: whether the last command told all that the lock is given back.
    [[nodiscard]] bool told_all() const noexcept { return told_all_; }

    /// Returns: what TIME answers, since 1970.
    [[nodiscard]] std::chrono::microseconds time(boot_clock::time_point now) const noexcept
    {
        return wall_at_start_of_world +
               std::chrono::duration_cast<std::chrono::microseconds>(clock_.at(now).time_since_epoch());
    }

    /// Effects: its clock is set, forward or back: keys expire sooner or later, and its uptime is another.
    void set_clock(boot_clock::duration by) noexcept { clock_.ahead += by; }

    /// Returns: how long it has run, by its own clock.
    [[nodiscard]] boot_clock::duration uptime(boot_clock::time_point now) const noexcept
    {
        return started_ ? clock_.at(now) - *started_ : boot_clock::duration{std::chrono::hours{24 * 365}};
    }

    [[nodiscard]] bool running() const noexcept { return running_; }

    /// Returns: a number that is different after every start.
    [[nodiscard]] unsigned incarnation() const noexcept { return incarnation_; }

    void stop() noexcept { running_ = false; }

    void save() { saved_ = static_cast<server_memory const&>(*this); }

    /// Effects: it knows what it knew at the last `save`, as a replica does that takes over without the last writes.
    void restore() { static_cast<server_memory&>(*this) = saved_; }

    void start(boot_clock::time_point now, memory m)
    {
        if (m == memory::saved) restore();
        if (m == memory::lost) static_cast<server_memory&>(*this) = {};
        refusals::restart();
        started_ = clock_.at(now);
        ++incarnation_;
        running_ = true;
    }

    /// Effects: until `t` it does nothing; what comes meanwhile is done then.
    void hang_until(boot_clock::time_point t) noexcept { hung_until_ = std::max(hung_until_, t); }
    [[nodiscard]] boot_clock::time_point hung_until() const noexcept { return hung_until_; }

    /// Returns: how often a key was set for a token.
    [[nodiscard]] std::uint64_t grants() const noexcept { return grants_; }

private:
    static constexpr microseconds wall_at_start_of_world{1'700'000'000'000'000};

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
                return all.no(one,
                              taken ? time_left(found->second, t) : lines_.reservation_left(one.keys->lock, whole(t)));
        }
        for (auto const& one : all.each()) all.granted(acquire_with_fence(one, false, t).fence);
        return all.yes();
    }

    clock clock_;
    bool running_ = true;
    unsigned incarnation_ = 0;
    std::optional<boot_clock::time_point> started_;  ///< by its own clock
    boot_clock::time_point hung_until_{};
    server_memory saved_;  // mutant: permits counted by each server
};

}  // namespace holdfast::sim
