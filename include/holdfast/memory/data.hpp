// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/token.hpp>
#include <holdfast/memory/opened.hpp>

#include <chrono>
#include <cstdint>
#include <iterator>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::memory {

/// Waits for a lock of a store. It outlives what it wakes.
class watcher {
public:
    watcher() = default;
    watcher(watcher const&) = delete;
    watcher& operator=(watcher const&) = delete;
    virtual ~watcher() = default;

    /// Called when the lock may be free, with no lock of the store held.
    virtual void wake() noexcept = 0;

    /// Called when it waits no longer, with no lock of the store held. Waits for a `wake()` that runs meanwhile; a
    /// later one has no effect.
    virtual void forget() noexcept = 0;
};

/// What goes wrong with one request.
struct request_fault {
    bool unavailable = false;
    bool answer_is_lost = false;
    std::chrono::milliseconds delay{};
    std::chrono::milliseconds operation_timeout{};
};

/// The leases of a store, and their waiters. Thread-safe.
class data final : public leases {
public:
    using waiters = std::list<std::shared_ptr<watcher>>;

    struct acquired {
        bool granted = false;
        std::uint64_t last_fence = 0;    ///< the last of the new fencing tokens; 0 if there are none
        boot_clock::time_point expires;  ///< of the present lease
    };

    /// Effects: gives `name` to `token` until `expires`, with `fences` new fencing tokens, if it is free at `now`.
    acquired acquire(std::string const& name, owner_token const& token, unsigned fences, boot_clock::time_point now,
                     boot_clock::time_point expires)
    {
        std::scoped_lock guard{mutex_};
        auto& r = records_[name];
        if (r.expires > now) return {.granted = false, .last_fence = 0, .expires = r.expires};
        r.owner = token;
        r.expires = expires;
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
    bool extend(std::string const& name, owner_token const& token, boot_clock::time_point now,
                boot_clock::time_point expires)
    {
        waiters woken;
        {
            std::scoped_lock guard{mutex_};
            auto const found = records_.find(name);
            if (found == records_.end() || found->second.expires <= now || found->second.owner != token) return false;
            if (expires < std::exchange(found->second.expires, expires)) woken = found->second.line;
        }
        for (auto const& one : woken) one->wake();
        return true;
    }

    /// Effects: ends the lease of `token`; wakes the first waiter. Returns: whether it had a lease at `now`.
    bool release(std::string const& name, owner_token const& token, boot_clock::time_point now)
    {
        std::unique_lock guard{mutex_};
        auto const found = records_.find(name);
        if (found == records_.end()) return false;
        bool const owned = found->second.expires > now && found->second.owner == token;
        if (owned || found->second.expires <= now) free(guard, found);  // nor is a lease that ended remembered
        return owned;
    }

    /// Effects: as `release`, but wakes no waiter. Returns: whether `token` had a lease.
    bool give_back(std::string const& name, owner_token const& token) noexcept
    {
        std::scoped_lock guard{mutex_};
        auto const found = records_.find(name);
        bool const owned = found != records_.end() && found->second.owner == token;
        if (owned) found->second.expires = {};
        return owned;
    }

    /// Effects: wakes the first waiter if the lock is free.
    void wake_first_if_free(std::string const& name)
    {
        std::unique_lock guard{mutex_};
        auto const found = records_.find(name);
        if (found != records_.end() && found->second.expires <= boot_clock::now()) free(guard, found);
    }

    void set_faults(faults const& f) noexcept override
    {
        std::scoped_lock guard{mutex_};
        faults_ = f;
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
    void erase(std::string const& name) override
    {
        std::unique_lock guard{mutex_};
        if (auto const found = records_.find(name); found != records_.end()) free(guard, found);
    }

    /// Effects: puts `who` at the end of the line of waiters for `name`. Returns: its place there.
    waiters::iterator watch(std::string const& name, std::shared_ptr<watcher> who)
    {
        waiters one;
        one.push_back(std::move(who));
        std::scoped_lock guard{mutex_};
        auto& line = records_[name].line;
        line.splice(line.end(), one);
        return std::prev(line.end());
    }

    /// Effects: the waiter at `place` is not woken any more. Removes it from the line, and wakes the next one if the
    /// lock is free: a wake-up may have been meant for it.
    void unwatch(std::string const& name, waiters::iterator place)
    {
        (*place)->forget();
        std::unique_lock guard{mutex_};
        auto const found = records_.find(name);
        found->second.line.erase(place);
        if (found->second.expires <= boot_clock::now()) free(guard, found);
    }

private:
    struct record {
        owner_token owner;
        boot_clock::time_point expires{};
        waiters line;
    };

    void free(std::unique_lock<std::mutex>& guard, std::map<std::string, record>::iterator r)
    {
        r->second.expires = {};
        if (r->second.line.empty()) return static_cast<void>(records_.erase(r));
        auto const first = r->second.line.front();
        guard.unlock();
        first->wake();
    }

    mutable std::mutex mutex_;
    std::map<std::string, record> records_;
    std::uint64_t last_fence_ = 0;
    faults faults_;
};

}  // namespace holdfast::memory
