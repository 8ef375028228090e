// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/backend.hpp>
#include <holdfast/core/lease.hpp>
#include <holdfast/core/lock.hpp>
#include <holdfast/lock/domain.hpp>

#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast {

/// A lock of the name `name()` on the store behind `B`. Meets `Lock` (whose clauses say what its members do) and the standard's
/// *Cpp17TimedLockable*. Any number of objects, in any number of processes, may have the same name; those of one client share one
/// queue. The object may outlive its client. Destroying an object that holds releases.
template <Backend B>
class basic_mutex {
public:
    /// Effects: prepares a lock; no I/O.
    /// Throws: `error` (`misconfigured`) where the name or an option cannot be used; it says which and why.
    basic_mutex(std::shared_ptr<detail::domain<B>> const& domain, std::string_view name, lock_options options)
    {
        check_name(name);
        queue_ = domain->queue(name);
        domain->backend().check(name, options);
        owner_.options = std::make_shared<lock_options const>(std::move(options));
    }

    basic_mutex(basic_mutex const&) = delete;
    basic_mutex& operator=(basic_mutex const&) = delete;

    /// Effects: `unlock()`, where the lock is held.
    ~basic_mutex()
    {
        if (queue_->hold_of(owner_)) unlock();
    }

    /// Effects: waits until the lock is held.
    /// Throws: `error`: `unavailable` when no quorum could be asked for `unavailable_after`; `misconfigured` at once.
    void lock() { acquire(boot_clock::time_point::max(), {}); }

    /// Effects: waits until the lock is held or `stop` is requested. Returns: whether it is held.
    [[nodiscard]] bool lock(std::stop_token const& stop) { return acquire(boot_clock::time_point::max(), stop); }

    /// Effects: asks once. Returns: whether the lock is held.
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

    /// Effects: `release(ec)`; what went wrong is told to `on_error`.
    void unlock() noexcept
    {
        std::error_code ec;
        release(ec);
        if (ec) detail::report(*owner_.options, ec, name(), "unlock");
    }

    /// Effects: gives the lock to the next waiting thread of this process, or back to the store, for whose answer it waits one
    /// operation timeout at most. Nothing where the lock is not held. Never frees another owner's lock.
    /// Postconditions: `ec` is no error; or `lease_lost`; `not_owner`; `unavailable` or `outcome_unknown`: the lock is free after its ttl
    /// at the latest.
    void release(std::error_code& ec) noexcept { ec = queue_->release(owner_); }

    /// Effects: asks for a lease of `ttl` from now on, longer or shorter than before, and renews with it from then on.
    /// Returns: whether the lease is of that length now. Otherwise `ec` is `not_owner`, `lease_lost`, `misconfigured` (`ttl` is out of
    /// range), or why the store could not be asked: then the lease runs on as before, though no longer than `ttl` until it is renewed.
    bool extend(std::chrono::milliseconds ttl, std::error_code& ec)
    {
        ec = ttl.count() > 0 && ttl <= longest_ttl ? queue_->extend(owner_, ttl) : make_error_code(errc::misconfigured);
        return !ec;
    }

    /// As above. Throws: `error` with that code.
    void extend(std::chrono::milliseconds ttl)
    {
        std::error_code ec;
        if (!extend(ttl, ec)) throw error{ec, "lock " + holdfast::quoted(name()) + ": extend"};
    }

    /// Returns: a handle to the present hold; an empty one where the lock is not held.
    [[nodiscard]] holdfast::lease lease() const { return holdfast::lease{queue_->hold_of(owner_)}; }

    [[nodiscard]] std::string const& name() const noexcept { return queue_->name(); }

private:
    bool acquire(boot_clock::time_point deadline, std::stop_token const& stop)
    {
        if (stop.stop_requested()) return false;
        if (queue_->in_child())
            throw error{errc::misconfigured, "lock " + holdfast::quoted(name()) + ": its client was made before fork(); make one in the child"};
        auto const why = queue_->acquire(owner_, deadline, stop);
        if (!why) return true;
        if (why->code == errc::timed_out || why->code == std::errc::operation_canceled) return false;
        throw error{why->code, "lock " + holdfast::quoted(name()) + (why->detail.empty() ? "" : ": " + why->detail)};
    }

    std::shared_ptr<detail::local_queue<B>> queue_;
    detail::lock_owner owner_;
};

}  // namespace holdfast
