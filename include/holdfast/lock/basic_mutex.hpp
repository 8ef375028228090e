// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/clock.hpp>
#include <holdfast/core/lease.hpp>
#include <holdfast/core/options.hpp>
#include <holdfast/lock/lock_owner.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>

namespace holdfast {

namespace detail {
template <class B>
class domain;
template <class B>
class local_queue;
}  // namespace detail

/// A lock of the name `name()` on the store behind `B`. Meets `Lock` (whose clauses say what its members do) and the standard's
/// *Cpp17TimedLockable*. Any number of objects, in any number of processes, may have the same name; those of one client share one
/// queue. The object may outlive its client. Destroying an object that holds releases.
///
/// `std::lock` and `std::scoped_lock` over several locks wait for one and try the others; when one is not free they give all back. A thread
/// that does so rests for a random time, 5 ms at most, before it waits again: otherwise two processes with different orders keep in step.
/// Two objects of one name are one lock, and are never got together: such a call does not return; `on_error` is told once
/// (`misconfigured`) when they are of one client.
///
/// `B` meets `Backend`; it may be incomplete where a lock is only used. The definitions are in <holdfast/lock/basic_mutex_members.hpp>.
template <class B>
class basic_mutex {
public:
    /// Effects: prepares a lock; no I/O.
    /// Throws: `error` (`misconfigured`) where the name or an option cannot be used; it says which and why.
    basic_mutex(std::shared_ptr<detail::domain<B>> const& domain, std::string_view name, lock_options options);

    basic_mutex(basic_mutex const&) = delete;
    basic_mutex& operator=(basic_mutex const&) = delete;

    /// Effects: `unlock()`, where the lock is held.
    ~basic_mutex();

    /// Effects: waits until the lock is held.
    /// Throws: `error`: `unavailable` when no quorum could be asked for `unavailable_after`; `misconfigured` at once.
    void lock() { acquire(boot_clock::time_point::max(), {}); }

    /// Effects: waits until the lock is held or `stop` is requested. Returns: whether it is held.
    [[nodiscard]] bool lock(std::stop_token const& stop) { return acquire(boot_clock::time_point::max(), stop); }

    /// Effects: asks once, and never rests. Returns: whether the lock is held; `false` when another object of this name holds it, in this
    /// thread or elsewhere. Where this client has used the lock for 100 ms and more without a gap, or another one is known to wait,
    /// `false` also without asking, when the lock was given back less than 5 ms ago (100 ms, where one waits), and
    /// the attempt before was as early: others are let in then. So is `try_lock_for` with less time than that.
    /// Throws: `error`: `unavailable`, `misconfigured`.
    [[nodiscard]] bool try_lock() { return acquire(boot_clock::time_point::min(), {}); }

    /// Effects: waits until the lock is held, for `d` at most. Returns: whether it is held.
    /// Throws: `error`: `unavailable` when no quorum could be asked in that time; `misconfigured` at once.
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_for(std::chrono::duration<Rep, Period> const& d)
    {
        return try_lock_for(std::stop_token{}, d);
    }

    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_for(std::stop_token const& stop, std::chrono::duration<Rep, Period> const& d)
    {
        return acquire(saturating_add(boot_clock::now(), d), stop);
    }

    /// As `try_lock_for`, until a point of any clock; how far away it is, is looked up once.
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_until(std::chrono::time_point<Clock, Duration> const& t)
    {
        return try_lock_until(std::stop_token{}, t);
    }

    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_until(std::stop_token const& stop, std::chrono::time_point<Clock, Duration> const& t)
    {
        return acquire(std::max(to_boot_clock(t), boot_clock::time_point{}), stop);
    }

    /// Effects: `unlock(ec)`; what went wrong is told to `on_error`. As with `std::mutex`, whoever gets this lock next may destroy the object
    /// before this has returned.
    void unlock() noexcept;

    /// Effects: gives the lock to the next waiting thread of this process, or back to the store, for whose answer it waits one
    /// operation timeout at most. Nothing where the lock is not held. Never frees another owner's lock.
    /// Postconditions: `ec` is no error; or `lease_lost`; `not_owner`; `unavailable` or `outcome_unknown`: the lock is free after its ttl
    /// at the latest.
    void unlock(std::error_code& ec) noexcept;

    /// Effects: asks for a lease of `ttl` from now on, longer or shorter than before, and renews with it from then on. A shorter one counts
    /// for the holder at once; what a server granted before runs out there by itself.
    /// Returns: whether the lease is of that length now. Otherwise `ec` is `not_owner`, `lease_lost`, `misconfigured` (`ttl` is out of
    /// range), or why the store could not be asked: then the lease runs on as before, though no longer than `ttl` until it is renewed.
    bool extend(std::chrono::milliseconds ttl, std::error_code& ec);

    /// As above. Throws: `error` with that code.
    void extend(std::chrono::milliseconds ttl);

    /// Returns: a handle to the present hold; an empty one where the lock is not held.
    [[nodiscard]] holdfast::lease lease() const;

    [[nodiscard]] std::string const& name() const noexcept;

private:
    bool acquire(boot_clock::time_point deadline, std::stop_token const& stop);

    std::shared_ptr<detail::local_queue<B>> queue_;
    detail::lock_owner owner_;
};

}  // namespace holdfast
