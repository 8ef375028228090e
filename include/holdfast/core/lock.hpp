// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/lease.hpp>

#include <chrono>
#include <concepts>
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

}  // namespace holdfast
