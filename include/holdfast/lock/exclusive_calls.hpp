// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/async_object.hpp>
#include <holdfast/core/lease.hpp>
#include <holdfast/core/store.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI {

/// The members that take a `mutex` and give it back, and those of a `shared_mutex` for its exclusive side: "held" is
/// there "held exclusively". They meet `Lock`, whose clauses say what they do.
class exclusive_calls {
public:
    exclusive_calls(exclusive_calls const&) = delete;
    exclusive_calls& operator=(exclusive_calls const&) = delete;

    /// Effects: waits until the lock is held.
    /// Throws: `error`: `unavailable` when no quorum could be asked for `unavailable_after`; `misconfigured` at once.
    void lock() { static_cast<void>(object_->lock({}, {})); }

    /// Effects: waits until the lock is held or `stop` is requested. Returns: whether it is held.
    [[nodiscard]] bool lock(std::stop_token const& stop) { return object_->lock({}, stop); }

    /// Effects: asks once, and never rests. Returns: whether the lock is held; `false` when another object of this name
    /// holds it, in this thread or elsewhere. Also `false`, without asking, to let others in: if the lock was given
    /// back less than 5 ms ago (100 ms if another client is known to wait), and the last attempt was as early. This
    /// happens only if this client has used the lock for 100 ms or more without a gap, or another client is known to
    /// wait. The same holds for `try_lock_for` with less time than that. And `false` if the lock was free, but its
    /// lease was nearly over when the grant came: it is given back.
    /// Throws: `error`: `unavailable`, `misconfigured`.
    [[nodiscard]] bool try_lock() { return object_->lock({.once = true}, {}); }

    /// Effects: waits until the lock is held, for `d` at most; one that is too long for the clock is no limit, as for
    /// `lock()`. Returns: whether it is held.
    /// Throws: `error`: `unavailable` when no quorum could be asked in that time; `misconfigured` at once.
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_for(std::chrono::duration<Rep, Period> const& d)
    {
        return try_lock_for(std::stop_token{}, d);
    }

    /// As above; it also ends when `stop` is requested.
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_for(std::stop_token const& stop, std::chrono::duration<Rep, Period> const& d)
    {
        return object_->lock(detail::patience::in(d), stop);
    }

    /// As `try_lock_for`, until a point of any clock. That clock is read once.
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_until(std::chrono::time_point<Clock, Duration> const& t)
    {
        return try_lock_until(std::stop_token{}, t);
    }

    /// As above; it also ends when `stop` is requested.
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_until(std::stop_token const& stop, std::chrono::time_point<Clock, Duration> const& t)
    {
        return object_->lock(detail::patience::until(t), stop);
    }

    /// Effects: `unlock(ec)`; errors are reported to `on_error`. As with `std::mutex`, the next holder of this lock may
    /// destroy the object before this has returned.
    void unlock() noexcept { object_->unlock(); }

    /// Effects: gives the lock to the next waiter of this process, or back to the store; in that case it waits for the
    /// answer, one operation timeout at most. No effect if the lock is not held. Never frees another owner's lock.
    /// Postconditions: `ec` is no error, `lease_lost` or `not_owner`; or `unavailable` or `outcome_unknown`: then the
    /// lock is free after its ttl at the latest.
    void unlock(std::error_code& ec) noexcept { object_->unlock(ec); }

    /// Effects: asks for a lease of `ttl` from now on, longer or shorter than before; later renewals use that ttl. A
    /// shorter one counts for the holder at once; what a server granted before expires there by itself.
    /// If several threads call it, one asks after the other.
    /// Returns: whether the lease is of that length now. Otherwise `ec` is `not_owner`; `lease_lost`, at once if the
    /// lock is lost or given back meanwhile; `misconfigured` (`ttl` is out of range); or why the store could not be
    /// asked, or `unavailable` if it granted no more than before, which ends soon: then the lease runs on as before,
    /// but no longer than `ttl` until it is renewed.
    bool extend(std::chrono::milliseconds ttl, std::error_code& ec) { return object_->extend(ttl, ec); }

    /// As above. Throws: `error` with that code.
    void extend(std::chrono::milliseconds ttl) { object_->extend(ttl); }

    /// Returns: a handle to the present hold; an empty one if the lock is not held.
    [[nodiscard]] holdfast::lease lease() const { return object_->lease(); }

    /// Returns: the name that it was made with.
    [[nodiscard]] std::string const& name() const noexcept { return object_->name(); }

    /// Effects: as `lock()`, but returns at once; `f(ec)` is called when the lock is held (no error) or will not be:
    /// `std::errc::operation_canceled` after `stop` or when the object was destroyed, or the code that `lock()` throws.
    /// `f` is called once, never from inside this call, by a thread of the client with no lock of the library held. A
    /// slow `f` delays no other lock. It should not throw: that ends the program.
    /// Throws: if memory or a thread is missing; then `f` is not called.
    void async_lock(std::function<void(std::error_code)> f, std::stop_token stop = {})
    {
        detail::begin_lock_of(*object_, {}, std::move(stop), detail::with_code(std::move(f)));
    }

    /// As above, waiting for `d` at most: `f(ec, held)`, with no error and `false` if the time passed while others held
    /// the lock.
    template <class Rep, class Period>
    void async_try_lock_for(std::chrono::duration<Rep, Period> const& d, std::function<void(std::error_code, bool)> f,
                            std::stop_token stop = {})  // NOLINT(performance-unnecessary-value-param): it is moved
    {
        detail::begin_lock_of(*object_, detail::patience::in(d), std::move(stop), detail::in_time(std::move(f)));
    }

    /// Effects: as `unlock(ec)`, but returns at once; `f(ec)` is called with its result, as above.
    void async_unlock(std::function<void(std::error_code)> f) { detail::begin_unlock_of(*object_, std::move(f)); }

protected:
    /// Effects: takes what `object` takes.
    explicit exclusive_calls(std::shared_ptr<detail::lock_object> object) noexcept : object_{std::move(object)} {}

    /// Effects: `unlock()`, if the lock is held. Asynchronous calls that have not ended are cancelled.
    ~exclusive_calls() { object_->close(); }

    /// Takes the lock.
    std::shared_ptr<detail::lock_object> const object_;  // NOLINT(*-non-private-member-variables-in-classes)

private:
    friend struct detail::async_access;

    [[nodiscard]] std::shared_ptr<detail::async_source> async_source() const noexcept { return object_; }
};

}  // namespace holdfast
