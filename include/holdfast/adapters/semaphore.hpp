// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/adapters/permits.hpp>
#include <holdfast/adapters/slot_set.hpp>
#include <holdfast/core/abi.hpp>
#include <holdfast/core/async_object.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/lock.hpp>
#include <holdfast/core/options.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/lock/report.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

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

    /// Effects: gives back all permits. Asynchronous calls that have not ended are cancelled.
    ~semaphore() { permits_->slots().close(); }

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
    [[nodiscard]] std::ptrdiff_t max() const noexcept { return static_cast<std::ptrdiff_t>(permits_->slots().size()); }

    /// Returns: the name that it was made with.
    [[nodiscard]] std::string const& name() const noexcept { return permits_->slots().name(); }

    /// Effects: as `acquire()`, but returns at once; `f(ec)` is called when a permit is held (no error) or will not be,
    /// as by `mutex::async_lock`: `std::errc::operation_canceled` after `stop` or when the object was destroyed, or the
    /// code that `acquire()` throws. Throws: if memory or a thread is missing; then `f` is not called.
    void async_acquire(std::function<void(std::error_code)> f, std::stop_token stop = {})
    {
        detail::begin_lock_of(*permits_, {}, std::move(stop), detail::with_code(std::move(f)));
    }

    /// As above, waiting for `d` at most: `f(ec, held)`, with no error and `false` if the time passed while others held
    /// the permits.
    void async_try_acquire_for(std::chrono::nanoseconds d, std::function<void(std::error_code, bool)> f,
                               std::stop_token stop = {})
    {
        detail::begin_lock_of(*permits_, {.deadline = saturating_add(boot_clock::now(), d)}, std::move(stop),
                              detail::in_time(std::move(f)));
    }

    /// Effects: as `release(ec)`, but returns at once; `f(ec)` is called with its result, as above.
    void async_release(std::function<void(std::error_code)> f) { detail::begin_unlock_of(*permits_, std::move(f)); }

protected:
    /// As the public one, with slots that `make` makes.
    semaphore(std::string_view name, std::ptrdiff_t max, lock_options const& options,
              detail::slot_set::maker const& make)
        : permits_{std::make_shared<detail::permits>(name, max, make)}, on_error_{options.on_error}
    {
    }

private:
    friend class leased_permit;

    friend struct detail::async_access;

    bool acquire(detail::patience const& p, std::stop_token const& stop)
    {
        auto const slot = permits_->slots().take(p, stop);
        if (slot) permits_->keep(*slot);
        return slot.has_value();
    }

    /// Returns: the slot that is to be given back; null if none is held by `acquire`.
    [[nodiscard]] std::shared_ptr<detail::lock_object> let_go() noexcept
    {
        auto const slot = permits_->let_go();
        return slot ? permits_->slots().at(*slot) : nullptr;
    }

    [[nodiscard]] std::shared_ptr<detail::async_source> async_permit_source() const noexcept { return permits_; }

    std::shared_ptr<detail::permits> const permits_;
    detail::error_hook on_error_;
};

static_assert(Semaphore<semaphore>);

}  // namespace holdfast
