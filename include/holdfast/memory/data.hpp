// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/access.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/holder_text.hpp>
#include <holdfast/core/lock_holder.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/core/options.hpp>
#include <holdfast/core/token.hpp>
#include <holdfast/memory/opened.hpp>
#include <holdfast/memory/permit_numbers.hpp>
#include <holdfast/memory/record.hpp>
#include <holdfast/memory/watcher.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::memory {

/// What goes wrong with one request.
struct request_fault {
    bool unavailable = false;
    bool answer_is_lost = false;
    std::chrono::milliseconds delay{};
    std::chrono::milliseconds operation_timeout{};
};

/// The leases of a store, and their waiters. Thread-safe.
class data final : public leases, public permit_numbers {
public:
    /// The waiters for one name, in the order of their numbers: that in which they came.
    using waiters = std::map<std::uint64_t, std::shared_ptr<watcher>>;

    struct acquired {
        bool granted = false;
        std::uint64_t last_fence = 0;    ///< the last of the new fencing tokens; 0 if there are none
        boot_clock::time_point expires;  ///< of the present lease
    };

    /// Effects: gives `name` to `wanted` until `expires`, with `fences` new fencing tokens, if it is not refused at
    /// `now`.
    acquired acquire(std::string const& name, wanted_lease const& wanted, unsigned fences, boot_clock::time_point now,
                     boot_clock::time_point expires)
    {
        std::scoped_lock guard{mutex_};
        auto& r = records_[name];
        r.calls_all = r.calls_all || wanted.mode != access::sole;
        bool const begins = r.leases.free(now);
        if (auto const until = r.leases.acquire(wanted, now, expires))
            return {.granted = false, .last_fence = 0, .expires = *until};
        if (begins || wanted.mode != access::shared) {
            r.since = now;
            r.asked = false;
            r.first_fence = fences == 0 ? 0 : last_fence_ + 1;
            r.lease = ++last_lease_;
        }
        last_fence_ += fences;
        return {.granted = true, .last_fence = fences == 0 ? 0 : last_fence_, .expires = expires};
    }

    /// Returns: whether others than the waiter at `place`, which may have none, are the first in line.
    [[nodiscard]] bool others_are_first(std::string const& name, std::optional<waiters::iterator> place) const
    {
        std::scoped_lock guard{mutex_};
        auto const found = records_.find(name);
        if (found == records_.end() || found->second.line.empty()) return false;
        return !place || found->second.line.begin() != waiters::const_iterator{*place};
    }

    /// Effects: makes the lease of `token` end at `expires`. If that is earlier than before, wakes all waiters: they
    /// wait for the old end.
    /// Returns: whether `token` has a lease at `now`.
    bool extend(lock_key const& key, owner_token const& token, boot_clock::time_point now,
                boot_clock::time_point expires)
    {
        std::unique_lock guard{mutex_};
        auto const found = records_.find(key.name());
        if (found == records_.end()) return false;
        auto const before = found->second.leases.extend(key.mode(), token, now, expires);
        if (!before) return false;
        if (expires < *before) wake_line(guard, key.name(), true);
        return true;
    }

    /// Returns: who has the lock at `now`, and who is in line for it.
    [[nodiscard]] lock_report inspect(std::string const& name, boot_clock::time_point now)
    {
        lock_report all{.knows_waiters = true};
        std::scoped_lock guard{mutex_};
        auto const found = records_.find(name);
        if (found == records_.end()) return all;
        auto& r = found->second;
        lock_contender here;
        holdfast::detail::read_holder_text(holdfast::detail::holder_text({}), here);
        all.waiters.assign(r.line.size(), here);
        if (r.leases.free(now)) return all;
        here.fencing_token = r.first_fence;
        here.since = std::chrono::system_clock::now() - std::chrono::floor<std::chrono::microseconds>(now - r.since);
        all.holder = lock_holder{std::move(here), std::chrono::ceil<std::chrono::milliseconds>(r.leases.end() - now),
                                 r.line.size(), r.asked};
        all.lease = std::to_string(r.lease);
        return all;
    }

    /// Effects: ends all leases of `name`; wakes waiters. Returns: whether it had one at `now`.
    bool force_release(std::string const& name, boot_clock::time_point now)
    {
        std::unique_lock guard{mutex_};
        auto const found = records_.find(name);
        if (found == records_.end()) return false;
        bool const held = !found->second.leases.free(now);
        found->second.leases.clear();
        wake(guard, name, found->second, now);
        return held;
    }

    /// Effects: the holder of `name` is told, with its next renewal, that it is asked to release it. Returns: whether
    /// there is one at `now`; readers are not told.
    bool request_release(std::string const& name, boot_clock::time_point now)
    {
        std::scoped_lock guard{mutex_};
        auto const found = records_.find(name);
        if (found == records_.end() || !found->second.leases.owned(now)) return false;
        return found->second.asked = true;
    }

    /// Returns: whether the holder `token` of `name` is asked to release it.
    [[nodiscard]] bool release_requested(std::string const& name, owner_token const& token) const
    {
        std::scoped_lock guard{mutex_};
        auto const found = records_.find(name);
        return found != records_.end() && found->second.asked && found->second.leases.owned_by(token);
    }

    /// Returns: the names that begin with `prefix` and are held at `now`, in order.
    [[nodiscard]] std::vector<std::string> list(std::string_view prefix, boot_clock::time_point now)
    {
        std::vector<std::string> names;
        std::scoped_lock guard{mutex_};
        for (auto at = records_.lower_bound(std::string{prefix}); at != records_.end(); ++at) {
            if (!at->first.starts_with(prefix)) break;
            if (!at->second.leases.free(now)) names.push_back(at->first);
        }
        return names;
    }

    /// Returns: how many of `names` are held at `now`.
    [[nodiscard]] std::size_t count(std::vector<std::string> const& names, boot_clock::time_point now)
    {
        std::scoped_lock guard{mutex_};
        std::size_t held = 0;
        for (auto const& one : names)
            if (auto const at = records_.find(one); at != records_.end() && !at->second.leases.free(now)) ++held;
        return held;
    }

    /// Effects: ends the lease of `token`; wakes waiters that may have the lock now. Returns: whether it had a lease at
    /// `now`.
    bool release(lock_key const& key, owner_token const& token, boot_clock::time_point now)
    {
        std::unique_lock guard{mutex_};
        auto const found = records_.find(key.name());
        if (found == records_.end()) return false;
        bool const owned = found->second.leases.release(key.mode(), token, now);
        // After a writer, readers may go in beside one; and a lease that ended is not remembered.
        if (found->second.leases.free(now) || (owned && key.mode() == access::exclusive))
            wake(guard, key.name(), found->second, now);
        return owned;
    }

    /// Effects: as `release`, but wakes no waiter. Returns: whether `token` had a lease.
    bool give_back(lock_key const& key, owner_token const& token) noexcept
    {
        std::scoped_lock guard{mutex_};
        auto const found = records_.find(key.name());
        return found != records_.end() && found->second.leases.release(key.mode(), token, boot_clock::now());
    }

    /// Effects: wakes waiters if no writer has the lock.
    void wake_if_free(std::string const& name)
    {
        std::unique_lock guard{mutex_};
        auto const now = boot_clock::now();
        auto const found = records_.find(name);
        if (found != records_.end() && !found->second.leases.owned(now)) wake(guard, name, found->second, now);
    }

    void set_faults(faults const& f) noexcept override
    {
        std::scoped_lock guard{mutex_};
        faults_ = f;
        for (auto* const time : {&faults_.delay, &faults_.operation_timeout})
            *time = std::clamp<std::chrono::milliseconds>(*time, std::chrono::milliseconds{}, longest_ttl);
    }

    [[nodiscard]] faults present_faults() const noexcept
    {
        std::scoped_lock guard{mutex_};
        return faults_;
    }

    /// Returns: what goes wrong with the request that is about to be sent.
    [[nodiscard]] request_fault next_fault() noexcept
    {
        std::scoped_lock guard{mutex_};
        if (faults_.unavailable) return {.unavailable = true, .operation_timeout = faults_.operation_timeout};
        bool const lost = faults_.lost_answers > 0;
        if (lost) --faults_.lost_answers;
        return {.answer_is_lost = lost, .delay = faults_.delay, .operation_timeout = faults_.operation_timeout};
    }

    /// Effects: ends the lease of `name`, if there is one.
    void erase(std::string const& name) override { static_cast<void>(force_release(name, boot_clock::now())); }

    /// Effects: puts `who`, who waits for `key`, at the end of the line. Returns: its place there.
    waiters::iterator watch(lock_key const& key, std::shared_ptr<watcher> who)
    {
        std::scoped_lock guard{mutex_};
        auto& r = records_[key.name()];
        auto const place = r.line.emplace(++last_waiter_, std::move(who)).first;
        if (key.mode() == access::exclusive) ++r.writers;
        return place;
    }

    /// Effects: the waiter at `place` is not woken any more. Removes it from the line, and wakes the next one if the
    /// lock is free: a wake-up may have been meant for it.
    void unwatch(lock_key const& key, waiters::iterator place)
    {
        place->second->forget();
        std::unique_lock guard{mutex_};
        auto& r = records_.find(key.name())->second;
        r.line.erase(place);
        auto const now = boot_clock::now();
        bool const last_writer = key.mode() == access::exclusive && --r.writers == 0;
        if (last_writer) r.leases.no_writer_waits();
        if (r.leases.free(now) || (last_writer && !r.leases.owned(now))) wake(guard, key.name(), r, now);
    }

private:
    struct of_name {
        record leases{};
        bool calls_all = false;  // readers may have it together, and writers do not know how many are before them
        waiters line{};
        std::size_t writers = 0;  // of these, the writers of a read-write lock
        boot_clock::time_point since{};
        std::uint64_t first_fence = 0;  // of the lease that took the lock
        std::uint64_t lease = 0;        // the number of that lease
        bool asked = false;             // its holder is asked to release it
    };

    /// Effects: wakes the first waiter for `name`, whose record is `r`, or all; unlocks. A free lock that no waiter
    /// wants is forgotten.
    void wake(std::unique_lock<std::mutex>& guard, std::string const& name, of_name& r, boot_clock::time_point now)
    {
        if (!r.line.empty()) return wake_line(guard, name, r.calls_all);
        if (r.leases.free(now)) records_.erase(name);
    }

    /// Effects: unlocks, and wakes the first waiter for `name`, or all that wait now. Needs no memory: a lock is given
    /// back without any. So it takes one at a time; meanwhile others may leave the line, and the record be forgotten.
    void wake_line(std::unique_lock<std::mutex>& guard, std::string const& name, bool all) noexcept
    {
        auto const last = last_waiter_;
        for (std::uint64_t woken = 0;;) {
            auto const found = records_.find(name);
            if (found == records_.end()) return;
            auto const next = found->second.line.upper_bound(woken);
            if (next == found->second.line.end() || next->first > last) return;
            auto const one = next->second;
            woken = next->first;
            guard.unlock();
            one->wake();
            if (!all) return;
            guard.lock();
        }
    }

    mutable std::mutex mutex_;
    std::map<std::string, of_name> records_;
    std::uint64_t last_fence_ =  // begins at the clock, so that those after a restart are greater
        static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch() / std::chrono::microseconds{1});
    static inline std::atomic<std::uint64_t> last_lease_{0};  // of all stores
    std::uint64_t last_waiter_ = 0;
    faults faults_;
};

}  // namespace holdfast::memory
