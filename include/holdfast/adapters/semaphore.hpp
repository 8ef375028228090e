// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/adapters/slot_set.hpp>
#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/fork_guard.hpp>
#include <holdfast/core/options.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/lock/report.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI {

class leased_permit;

/// At most `max()` permits of the name `name()` in a store, over all processes. The members have the names of
/// `std::counting_semaphore`; a permit is a lease, which is renewed while it is held, and may be lost. Any number of
/// threads may use one object and hold permits of it. The object may outlive its store. The destructor gives back all
/// permits that were taken from it, and waits for one operation timeout at most.
///
///     holdfast::redis::semaphore jobs{redis, "jobs", 3};
///     holdfast::leased_permit slot{jobs, 500ms};
///
/// Each permit is a slot, a lock of the name `jobs#0`, `jobs#1`, and so on. So a semaphore is as safe as a mutex of its
/// store, on Redlock's masters, too, and each slot has fencing tokens of its own. The servers do not know `max()`: all
/// objects of a name should have the same. If they have not, the greatest counts: an object of 3 uses the slots 0 to 2,
/// and one of 5 beside it takes the other two.
///
/// A thread that waits is in the queues of all slots, and is woken by the release of any: `max()` requests for each
/// wait. If it is granted two at once, it gives one back at once; another thread that tries just then may find no
/// permit free.
class semaphore {
public:
    /// Effects: prepares a semaphore; no I/O. `options` are those of each slot.
    /// Throws: `error` (`misconfigured`) if the name or an option cannot be used, or `max` is not 1 to 1,000.
    semaphore(store const& in, std::string_view name, std::ptrdiff_t max, lock_options const& options = {})
        : semaphore{name, max, options, [&](std::string const& slot) { return in.locks_->make_mutex(slot, options); }}
    {
    }

    semaphore(semaphore const&) = delete;
    semaphore& operator=(semaphore const&) = delete;
    ~semaphore() = default;

    /// Effects: waits until a permit is held.
    /// Throws: `error`: `unavailable` when no quorum could be asked for `unavailable_after`; `misconfigured` at once.
    void acquire() { static_cast<void>(acquire({}, {})); }

    /// Effects: waits until a permit is held or `stop` is requested. Returns: whether one is held.
    [[nodiscard]] bool acquire(std::stop_token const& stop) { return acquire({}, stop); }

    /// Effects: tries each slot, until one is free. Returns: whether a permit is held; `false` when all are held, here
    /// or elsewhere. Also `false` for a moment to let others in: see `mutex::try_lock`.
    /// Throws: `error`: `unavailable` if no slot could be asked; `misconfigured`.
    [[nodiscard]] bool try_acquire() { return acquire({.once = true}, {}); }

    /// Effects: waits until a permit is held, for `d` at most. Returns: whether one is held; by its deadline and one
    /// operation timeout. If one answer of the store takes longer than `d`, that answer comes on top.
    /// Throws: `error`: `unavailable` when no slot could be asked in that time; `misconfigured` at once.
    template <class Rep, class Period>
    [[nodiscard]] bool try_acquire_for(std::chrono::duration<Rep, Period> const& d)
    {
        return try_acquire_for(std::stop_token{}, d);
    }

    /// As above; it also ends when `stop` is requested.
    template <class Rep, class Period>
    [[nodiscard]] bool try_acquire_for(std::stop_token const& stop, std::chrono::duration<Rep, Period> const& d)
    {
        return acquire({.deadline = saturating_add(boot_clock::now(), d)}, stop);
    }

    /// As `try_acquire_for`, until a point of any clock. That clock is read once.
    template <class Clock, class Duration>
    [[nodiscard]] bool try_acquire_until(std::chrono::time_point<Clock, Duration> const& t)
    {
        return try_acquire_until(std::stop_token{}, t);
    }

    /// As above; it also ends when `stop` is requested.
    template <class Clock, class Duration>
    [[nodiscard]] bool try_acquire_until(std::stop_token const& stop, std::chrono::time_point<Clock, Duration> const& t)
    {
        return acquire({.deadline = std::max(to_boot_clock(t), boot_clock::time_point{})}, stop);
    }

    /// Effects: `release(ec)`; errors are reported to `on_error`.
    void release() noexcept
    {
        if (auto const slot = let_go()) return slot->unlock();
        detail::report(on_error_, name(), {make_error_code(errc::not_owner), {}});
    }

    /// Effects: gives back one of the permits that this object has by `acquire` and its siblings, whichever thread
    /// called them: one that is lost, if there is any, or else the one that it has had longest. It waits for the answer
    /// of the store, one operation timeout at most, unless a waiter of this process gets the permit. No effect if there
    /// is none. The permits of `leased_permit` are not among them. The next holder may destroy the object before this
    /// has returned.
    /// Postconditions: `ec` is no error, `lease_lost` or `not_owner`; or `unavailable` or `outcome_unknown`: then the
    /// permit is free after its ttl at the latest.
    void release(std::error_code& ec) noexcept
    {
        ec = make_error_code(errc::not_owner);
        if (auto const slot = let_go()) slot->unlock(ec);
    }

    /// Returns: how many permits there are.
    [[nodiscard]] std::ptrdiff_t max() const noexcept { return static_cast<std::ptrdiff_t>(slots_.size()); }

    /// Returns: the name that it was made with.
    [[nodiscard]] std::string const& name() const noexcept { return slots_.name(); }

protected:
    /// As the public one, with slots that `make` makes.
    semaphore(std::string_view name, std::ptrdiff_t max, lock_options const& options,
              detail::slot_set::maker const& make)
        : slots_{name, max, make}, on_error_{options.on_error}, taken_(slots_.size())
    {
    }

private:
    friend class leased_permit;

    bool acquire(detail::patience const& p, std::stop_token const& stop)
    {
        auto const slot = slots_.take(p, stop);
        if (!slot) return false;
        std::scoped_lock guard{mutex_};
        taken_[*slot] = ++acquired_;
        return true;
    }

    /// Returns: the slot that is to be given back; null if none is held by `acquire`.
    [[nodiscard]] std::shared_ptr<detail::lock_object> let_go() noexcept
    {
        if (origin_.in_child()) return nullptr;  // the mutex may be locked for ever
        std::scoped_lock guard{mutex_};
        std::optional<std::size_t> chosen;
        for (std::size_t i = 0; i < taken_.size(); ++i) {
            if (taken_[i] == 0) continue;
            bool const lost = !slots_.at(i)->lease().still_held();
            if (lost || !chosen || taken_[i] < taken_[*chosen]) chosen = i;
            if (lost) break;
        }
        if (!chosen) return nullptr;
        taken_[*chosen] = 0;
        return slots_.at(*chosen);
    }

    detail::slot_set slots_;
    detail::error_hook on_error_;
    std::mutex mutex_;
    std::vector<std::uint64_t> taken_;  // for each slot that was taken by `acquire`, its number in that order; 0: none
    std::uint64_t acquired_ = 0;
    detail::fork_guard const origin_;
};

}  // namespace holdfast
