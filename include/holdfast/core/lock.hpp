// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/lease.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <stop_token>
#include <system_error>

namespace holdfast::inline HOLDFAST_ABI {

/// What a user may rely on with every store. It is the standard's *Cpp17TimedLockable* with these clauses:
///
/// - The lock is exclusive among everything that uses its name in its store, under the timing assumptions of the
///   backend.
/// - The owner is the mutex object: any thread may unlock it. `lock()` on an object that holds the lock waits until it
///   is unlocked.
/// - If a member that locks throws, the lock is not held; nothing that holds it is left, or it expires with its ttl.
///   These members throw `error`: `unavailable`, `misconfigured`; and what the system throws when memory or threads are
///   short.
/// - `try_lock_for` and `try_lock_until` return by their deadline and one operation timeout of the backend. `false`:
///   the time passed while others held the lock. If no quorum could be asked until then, they throw `unavailable`.
/// - `try_lock` may return `false` for a moment although the lock is free, if this client has to let others in first.
/// - The members that take a `std::stop_token` return `false` when it is stopped before the lock is taken.
/// - `unlock()` does not throw. `unlock(error_code&)` says what happened: no error; `lease_lost`, the lease had ended
///   before; `not_owner`, it was not locked; or why the outcome is not known. Neither ever frees another owner's lock.
/// - `lease()` is a handle to the present hold; `extend(ttl, error_code&)` asks for a lease of `ttl` from now on. It
///   returns `false` with `lease_lost`, `not_owner`, or why the result is not known; then the lease runs on as before,
///   but no longer than `ttl`.
template <class L>
concept Lock = requires(L& lock, L const& constant, std::stop_token stop, std::chrono::milliseconds d,
                        boot_clock::time_point t, std::error_code& ec) {
    lock.lock();
    {
        lock.lock(stop)
    } -> std::same_as<bool>;
    {
        lock.try_lock()
    } -> std::same_as<bool>;
    {
        lock.try_lock_for(d)
    } -> std::same_as<bool>;
    {
        lock.try_lock_until(t)
    } -> std::same_as<bool>;
    {
        lock.try_lock_for(stop, d)
    } -> std::same_as<bool>;
    {
        lock.try_lock_until(stop, t)
    } -> std::same_as<bool>;
    {
        lock.unlock()
    } noexcept;
    lock.unlock(ec);
    {
        lock.extend(d, ec)
    } -> std::same_as<bool>;
    {
        constant.lease()
    } -> std::same_as<lease>;
};

/// A read-write lock with every store. It is the standard's *Cpp17SharedTimedLockable* whose exclusive side is a
/// `Lock`, with these clauses:
///
/// - An exclusive hold is alone; shared holds are beside each other. Each hold is a lease of its own, with a fencing
///   token that is greater than those of all exclusive holds before it; that of an exclusive hold is greater than those
///   of all holds before it.
/// - The members of the shared side do what those of `Lock` do, and throw the same. `false` from one that asks only
///   once: the lock is held exclusively, or waited for so.
/// - The owner is the object: any thread may call `unlock_shared`. It gives back the shared hold that this thread took
///   last, or else the oldest of the object. `lease_shared()` and `extend_shared` are about that hold.
/// - Writers do not keep readers waiting for ever, nor readers writers.
template <class L>
concept SharedLock = Lock<L> && requires(L& lock, L const& constant, std::stop_token stop, std::chrono::milliseconds d,
                                         boot_clock::time_point t, std::error_code& ec) {
    lock.lock_shared();
    {
        lock.lock_shared(stop)
    } -> std::same_as<bool>;
    {
        lock.try_lock_shared()
    } -> std::same_as<bool>;
    {
        lock.try_lock_shared_for(d)
    } -> std::same_as<bool>;
    {
        lock.try_lock_shared_until(t)
    } -> std::same_as<bool>;
    {
        lock.try_lock_shared_for(stop, d)
    } -> std::same_as<bool>;
    {
        lock.try_lock_shared_until(stop, t)
    } -> std::same_as<bool>;
    {
        lock.unlock_shared()
    } noexcept;
    lock.unlock_shared(ec);
    {
        lock.extend_shared(d, ec)
    } -> std::same_as<bool>;
    {
        constant.lease_shared()
    } -> std::same_as<lease>;
};

/// Permits with every store: the members of `std::counting_semaphore`, with these clauses:
///
/// - At most `max()` permits of the name are held at a time, in all processes, under the timing assumptions of the
///   backend, if all of its objects have the same `max()`.
/// - The owner of a permit is the object: any thread may release one. A permit is a lease, which may be lost. There is
///   no release without an acquire.
/// - The members that acquire do what those of `Lock` that lock do, and throw the same. `false` from `try_acquire`:
///   others hold all permits, or this client has to let others in first.
/// - `release()` does not throw. `release(error_code&)` says what happened, as `unlock(error_code&)` of a `Lock` does.
template <class S>
concept Semaphore = requires(S& permits, S const& constant, std::stop_token stop, std::chrono::milliseconds d,
                             boot_clock::time_point t, std::error_code& ec) {
    permits.acquire();
    {
        permits.acquire(stop)
    } -> std::same_as<bool>;
    {
        permits.try_acquire()
    } -> std::same_as<bool>;
    {
        permits.try_acquire_for(d)
    } -> std::same_as<bool>;
    {
        permits.try_acquire_until(t)
    } -> std::same_as<bool>;
    {
        permits.try_acquire_for(stop, d)
    } -> std::same_as<bool>;
    {
        permits.try_acquire_until(stop, t)
    } -> std::same_as<bool>;
    {
        permits.release()
    } noexcept;
    permits.release(ec);
    {
        constant.max()
    } -> std::same_as<std::ptrdiff_t>;
};

}  // namespace holdfast
