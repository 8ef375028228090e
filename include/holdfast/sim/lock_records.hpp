// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/access.hpp>
#include <holdfast/redis/commands.hpp>
#include <holdfast/sim/fence_counters.hpp>
#include <holdfast/sim/read_phase.hpp>
#include <holdfast/sim/server_memory.hpp>
#include <holdfast/sim/stored_keys.hpp>
#include <holdfast/sim/waiting_lines.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace holdfast::inline HOLDFAST_ABI::sim {

/// What a simulated server does with its keys, and with a command that knows of readers.
class lock_records : protected server_memory {
protected:
    using microseconds = std::chrono::microseconds;

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

    [[nodiscard]] static std::chrono::milliseconds time_left(stored_key const& e, microseconds t)
    {
        return e.expires ? *e.expires - whole(t) : redis::unknown_time_left;
    }

    /// Returns: whether `c` does more in a phase than to say for how long a writer has the lock.
    [[nodiscard]] static bool changes_phase(redis::command const& c) noexcept
    {
        return redis::knows_phase(c) && (redis::mode_of(c) == access::shared || !redis::extends(c));
    }

    /// Effects: runs `c` at `t`, for a command that changes the phase.
    redis::answer execute_in_phase(redis::command const& c, microseconds t, waiting_lines::caller const& call)
    {
        using enum redis::command::verb;
        auto& phase = phases_[c.keys->lock];
        auto const found = keys_.find(c.keys->lock);
        auto value = found == keys_.end() ? std::string{} : found->second.holds;
        bool const shared = redis::mode_of(c) == access::shared;
        if (shared && phase.over(value, whole(t))) value = read_phase::reserved;
        bool const ours = shared ? phase.reads(c, value) : value == c.token.view();
        switch (c.what) {
        case acquire: {
            auto const left = found == keys_.end() ? std::chrono::milliseconds{0} : time_left(found->second, t);
            phase.come(c, whole(t));
            auto refused = ours ? std::nullopt : phase.refuses(c, value, left, whole(t));
            if (shared) return refused ? redis::answer::no(*refused) : acquire_with_fence(c, false, t);
            if (!refused && value.empty() && c.use_queue) {
                lines_.call_next_before(c, t, call);
                if (auto const until = lines_.reserved_for_another(c.keys->lock, c.waiter)) refused = *until - whole(t);
            }
            // mutant: a writer that was called let in beside others
            if (!refused) return acquire_with_fence(c, ours, t);
            phase.refused_writer(c, value, whole(t));
            return refuse(c, *refused, t);
        }
        case confirm: return ours && fences_.raise(c, t) ? redis::answer::yes() : redis::answer::no();
        case reacquire:
        case extend:
            // mutant: a renewal that makes a reader's record anew
            if (!ours && (c.what == extend || !(value.empty() || value == read_phase::reserved)))
                return redis::answer::no();
            grant(c, t);
            return answer_to_renewal(phase.asked(c));
        case release:
        case leave: break;
        default: return {};  // what operators ask is not simulated
        }
        if (!shared) return release_exclusive(c, ours, t, call);
        if (c.what == leave) {
            if (!c.waiter || !phase.leave_waiting(c, value.empty(), whole(t))) return redis::answer::no();
        } else {
            phase.leave(c, value);
            if (!ours) return redis::answer::no();
            auto const last = phase.last();
            if (value != read_phase::reserved) return redis::answer::yes();
            if (last) {
                found->second.expires = last;
                return redis::answer::yes();
            }
            keys_.erase(found);
        }
        if (c.use_queue) lines_.call_next(c.keys, whole(t), call);
        told_all_ = !(c.use_queue && phase.writer_queues(whole(t)) && lines_.reserved(c.keys->lock));
        return redis::answer::yes();
    }

    /// Effects: the waiter of `c` is in line. Returns: no, for `left` more.
    redis::answer refuse(redis::command const& c, std::chrono::milliseconds left, microseconds t)
    {
        auto no = redis::answer::no(left);
        if (c.use_queue) lines_.end_reservation(c.keys->lock, c.waiter);
        no.in_line = redis::gets_in_line(c);
        if (!no.in_line) return no;
        auto const ahead = static_cast<int>(lines_.enter(c, t));
        no.last_score = lines_.last_after(c);
        if (left.count() >= 0) no.time_left += std::chrono::milliseconds{4 * ahead};
        return no;
    }

    void grant(redis::command const& c, microseconds t)
    {
        if (changes_phase(c)) {
            auto& phase = phases_[c.keys->lock];
            auto& key = keys_[c.keys->lock];
            if (redis::mode_of(c) == access::shared) {
                bool const free = key.holds.empty() || phase.over(key.holds, whole(t));
                auto const last = phase.join(c, key.holds, key.expires, whole(t));
                if (free) key = {std::string{read_phase::reserved}, last};
                if (key.expires) key.expires = std::max(*key.expires, last);
                ++grants_;
                return;
            }
            if (c.use_queue) lines_.leave(c.keys->lock, c.waiter);
            auto const before = key.holds.empty() ? std::nullopt : key.expires;
            auto const ends = std::max(expiry(t, c.ttl), before.value_or(std::chrono::milliseconds{0}));
            phase.taken(c, key.holds, ends,
                        c.use_queue ? lines_.waited_for(c.keys->lock) : phase.writer_queues(whole(t)));
            key = {std::string{c.token.view()}, ends, c.use_holder};
            ++grants_;
            return;
        }
        keys_.insert_or_assign(c.keys->lock, stored_key{std::string{c.token.view()}, expiry(t, c.ttl), c.use_holder});
        ++grants_;
    }

    redis::answer acquire_with_fence(redis::command const& c, bool ours, microseconds t)
    {
        auto got = fences_.draw(c, t);
        if (got.what != redis::answer::kind::applied) return got;
        if (!ours) grant(c, t);
        if (ours && c.use_holder) {  // its record is written again, without a mark
            auto& key = keys_[c.keys->lock];
            key.has_record = true;
            key.release_requested = false;
        }
        if (c.use_queue) lines_.leave(c.keys->lock, c.waiter);
        got.in_line = redis::gets_in_line(c);
        return got;
    }

    /// Returns: yes to a renewal of a holder that is asked to release the lock, or not.
    [[nodiscard]] static redis::answer answer_to_renewal(bool release_requested)
    {
        auto yes = redis::answer::yes();
        yes.release_requested = release_requested;
        return yes;
    }

    bool told_all_ = false;     // NOLINT(*-non-private-member-variables-in-classes)
    std::uint64_t grants_ = 0;  // NOLINT(*-non-private-member-variables-in-classes)

private:
    redis::answer release_exclusive(redis::command const& c, bool ours, microseconds t,
                                    waiting_lines::caller const& call)
    {
        auto& phase = phases_[c.keys->lock];
        auto const found = keys_.find(c.keys->lock);
        bool held = !ours && found != keys_.end();
        if (ours) {  // mutant: a release that frees what is another's
            auto const last = phase.end_write(c, whole(t));
            held = last.has_value();
            if (last)
                found->second = {std::string{read_phase::reserved}, last};
            else
                keys_.erase(found);
        }
        bool const waits = c.use_queue && c.waiter;
        if (waits) c.score != 0 ? static_cast<void>(lines_.enter(c, t)) : lines_.leave(c.keys->lock, c.waiter);
        bool const last_waiter = waits && c.score == 0 && phase.writer_queues(whole(t)) && !lines_.wanted(c.keys->lock);
        if (last_waiter) phase.no_writer_waits();
        told_all_ = ours || last_waiter || (waits && !held);
        if (!ours && (!waits || held)) return redis::answer::no();
        if (c.use_queue && !held) lines_.call_next(c.keys, whole(t), call);
        return redis::answer::yes();
    }
};

}  // namespace holdfast::sim
