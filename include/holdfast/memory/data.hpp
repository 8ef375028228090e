// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/clock.hpp>
#include <holdfast/core/parker.hpp>
#include <holdfast/core/token.hpp>

#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::memory {

/// The leases of a store, and who waits for them. Thread-safe.
class data {
public:
    using waiters = std::list<holdfast::detail::parker*>;

    struct acquired {
        bool granted = false;
        std::uint64_t last_fence = 0;      ///< the last of the new fencing tokens
        boot_clock::time_point expires;  ///< of the lease that there is now
    };

    /// Effects: gives `name` to `token` until `expires`, with `fences` new fencing tokens, where nobody has it at `now`.
    acquired acquire(std::string const& name, owner_token const& token, unsigned fences, boot_clock::time_point now,
                     boot_clock::time_point expires)
    {
        std::scoped_lock guard{mutex_};
        auto& r = records_[name];
        if (r.expires > now) return {.granted = false, .last_fence = 0, .expires = r.expires};
        r.owner = token;
        r.expires = expires;
        last_fence_ += fences;
        return {.granted = true, .last_fence = last_fence_, .expires = expires};
    }

    /// Effects: has the lease of `token` end at `expires`; where that is earlier than before, wakes all who wait, for they sleep until then.
    /// Returns: whether it has one at `now`.
    bool extend(std::string const& name, owner_token const& token, boot_clock::time_point now, boot_clock::time_point expires)
    {
        std::scoped_lock guard{mutex_};
        auto const found = records_.find(name);
        if (found == records_.end() || found->second.expires <= now || found->second.owner != token) return false;
        if (expires < std::exchange(found->second.expires, expires))
            for (auto* const one : found->second.line) one->unpark();
        return true;
    }

    /// Effects: ends the lease of `token`; wakes the first who waits. Returns: whether it had one at `now`.
    bool release(std::string const& name, owner_token const& token, boot_clock::time_point now)
    {
        std::scoped_lock guard{mutex_};
        auto const found = records_.find(name);
        if (found == records_.end() || found->second.expires <= now || found->second.owner != token) return false;
        free(found);
        return true;
    }

    /// Effects: ends whatever lease there is.
    void erase(std::string const& name)
    {
        std::scoped_lock guard{mutex_};
        if (auto const found = records_.find(name); found != records_.end()) free(found);
    }

    /// Effects: puts `who` at the end of the line of those who are woken when `name` is released.
    void watch(std::string const& name, waiters& who)
    {
        std::scoped_lock guard{mutex_};
        auto& line = records_[name].line;
        line.splice(line.end(), who);
    }

    /// Effects: takes the waiter at `place` out of the line, into `who`, and wakes the next one, for which the wake-up may have been meant.
    void unwatch(std::string const& name, waiters::iterator place, waiters& who)
    {
        std::scoped_lock guard{mutex_};
        auto const found = records_.find(name);
        who.splice(who.end(), found->second.line, place);
        if (found->second.expires <= boot_clock::now()) free(found);
    }

private:
    struct record {
        owner_token owner;
        boot_clock::time_point expires{};
        waiters line;
    };

    void free(std::map<std::string, record>::iterator r)
    {
        r->second.expires = {};
        if (r->second.line.empty())
            records_.erase(r);
        else
            r->second.line.front()->unpark();
    }

    std::mutex mutex_;
    std::map<std::string, record> records_;
    std::uint64_t last_fence_ = 0;
};

}  // namespace holdfast::memory
