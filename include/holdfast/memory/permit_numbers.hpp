// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/core/semaphore_slot.hpp>
#include <holdfast/core/sweep_pace.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>

namespace holdfast::inline HOLDFAST_ABI::memory {

/// The key of a slot of a semaphore. The number of permits is its kind.
class slot_key final : public lock_key {
public:
    explicit slot_key(semaphore_slot const& of)
        : lock_key{of.lock_name(), std::to_string(of.permits)}, semaphore_{of.semaphore}, permits_{of.permits}
    {
    }

    [[nodiscard]] std::string const& semaphore() const noexcept { return semaphore_; }
    [[nodiscard]] std::size_t permits() const noexcept { return permits_; }

private:
    std::string semaphore_;
    std::size_t permits_;
};

/// Returns: `key`, if it is one of a slot; otherwise null. Only these have a kind here.
[[nodiscard]] inline slot_key const* slot_of(lock_key const& key) noexcept
{
    return key.kind().empty() ? nullptr : static_cast<slot_key const*>(&key);
}

/// The numbers of permits of the semaphores in use. Each lasts until the last lease of a slot can have ended.
/// Thread-safe.
class permit_numbers {
public:
    /// Effects: unless another number is in use at `now`, that of `slot` is, until `expires` at least. Returns: the
    /// other number; 0 if there is none.
    std::size_t agree(slot_key const& slot, boot_clock::time_point now, boot_clock::time_point expires)
    {
        std::scoped_lock guard{mutex_};
        auto found = all_.find(slot.semaphore());
        if (found != all_.end() && found->second.expires > now && found->second.permits != slot.permits())
            return found->second.permits;
        if (found == all_.end()) {
            forget_expired(now);
            found = all_.try_emplace(slot.semaphore()).first;
        }
        auto& one = found->second;
        one = {slot.permits(), one.permits == slot.permits() ? std::max(one.expires, expires) : expires};
        return 0;
    }

    /// Effects: the number in use is that of `slot`, as long as the number before would be, and until `expires` at
    /// least.
    void change(slot_key const& slot, boot_clock::time_point expires)
    {
        std::scoped_lock guard{mutex_};
        auto& one = all_[slot.semaphore()];
        one = {slot.permits(), std::max(one.expires, expires)};
    }

    /// Effects: whatever number is in use lasts until `expires` at least: a lease of `slot` does.
    void prolong(slot_key const& slot, boot_clock::time_point expires)
    {
        std::scoped_lock guard{mutex_};
        if (auto const found = all_.find(slot.semaphore()); found != all_.end())
            found->second.expires = std::max(found->second.expires, expires);
    }

private:
    struct number {
        std::size_t permits = 0;
        boot_clock::time_point expires{};
    };

    void forget_expired(boot_clock::time_point now)
    {
        if (!pace_.due(all_.size())) return;
        std::erase_if(all_, [now](auto const& one) { return one.second.expires <= now; });
        pace_.swept(all_.size());
    }

    std::mutex mutex_;
    detail::sweep_pace pace_;
    std::map<std::string, number> all_;  // by the names of the semaphores
};

}  // namespace holdfast::memory
