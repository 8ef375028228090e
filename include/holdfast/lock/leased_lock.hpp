// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/lease_access.hpp>
#include <holdfast/core/lock.hpp>
#include <holdfast/core/name.hpp>

#include <chrono>
#include <mutex>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI {

/// `std::unique_lock` for a lock that can be lost: the same members and tags, and what a holder may ask about its
/// lease.
///
///     if (holdfast::leased_lock hold{orders, 500ms}) {
///         db.write(row, hold.fencing_token());
///         if (!hold.still_held()) rollback();
///     }
///
/// A guard without a name, `holdfast::leased_lock{orders};`, unlocks at the end of its statement: the compiler warns.
///
/// Members that lock throw what `M` throws, and `std::system_error` as `std::unique_lock` does:
/// `operation_not_permitted` if there is no mutex, `resource_deadlock_would_occur` if it is owned already.
template <Lock M>
class leased_lock : public lease_access {
public:
    /// The type of the lock.
    using mutex_type = M;

    leased_lock() noexcept = default;
    /// Effects: waits until the lock is held.
    [[nodiscard]] explicit leased_lock(M& m) : mutex_{&m} { lock(); }
    /// Effects: remembers `m`, and takes no lock.
    [[nodiscard]] leased_lock(M& m, std::defer_lock_t) noexcept : mutex_{&m} {}
    /// Effects: asks once. The guard owns the lock if it was free.
    [[nodiscard]] leased_lock(M& m, std::try_to_lock_t) : mutex_{&m} { (void)try_lock(); }

    /// Requires: `m` is locked, and only this guard will unlock it.
    [[nodiscard]] leased_lock(M& m, std::adopt_lock_t) : lease_access{m.lease()}, mutex_{&m}, owns_{true} {}

    /// Effects: waits until the lock is held, for `d` at most.
    template <class Rep, class Period>
    [[nodiscard]] leased_lock(M& m, std::chrono::duration<Rep, Period> const& d) : mutex_{&m}
    {
        (void)try_lock_for(d);
    }

    /// Effects: waits until the lock is held, until `t` at the latest.
    template <class Clock, class Duration>
    [[nodiscard]] leased_lock(M& m, std::chrono::time_point<Clock, Duration> const& t) : mutex_{&m}
    {
        (void)try_lock_until(t);
    }

    /// Effects: waits until the lock is held, or `stop` is requested.
    [[nodiscard]] leased_lock(M& m, std::stop_token const& stop) : mutex_{&m} { (void)lock(stop); }

    /// Effects: as above, for `d` at most.
    template <class Rep, class Period>
    [[nodiscard]] leased_lock(M& m, std::stop_token const& stop, std::chrono::duration<Rep, Period> const& d)
        : mutex_{&m}
    {
        (void)try_lock_for(stop, d);
    }

    /// Effects: takes over the lock of `other`, which owns none afterwards.
    leased_lock(leased_lock&& other) noexcept
        : lease_access{std::move(other)},
          mutex_{std::exchange(other.mutex_, nullptr)},
          owns_{std::exchange(other.owns_, false)}
    {
    }

    /// Effects: unlocks, and takes over the lock of `other`, which owns none afterwards.
    leased_lock& operator=(leased_lock&& other) noexcept
    {
        leased_lock{std::move(other)}.swap(*this);
        return *this;
    }

    /// Effects: unlocks, if the lock is owned. Errors are reported to `on_error`.
    ~leased_lock()
    {
        if (owns_) mutex_->unlock();
    }

    /// Effects: waits until the lock is held.
    void lock()
    {
        require_lockable();
        mutex_->lock();
        note(true);
    }

    /// Effects: waits until the lock is held or `stop` is requested. Returns: whether it is held.
    [[nodiscard]] bool lock(std::stop_token const& stop)
    {
        require_lockable();
        return note(mutex_->lock(stop));
    }

    /// Effects: asks once. Returns: whether the lock is held.
    [[nodiscard]] bool try_lock()
    {
        require_lockable();
        return note(mutex_->try_lock());
    }

    /// Effects: waits until the lock is held, for `d` at most. Returns: whether it is held.
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_for(std::chrono::duration<Rep, Period> const& d)
    {
        require_lockable();
        return note(mutex_->try_lock_for(d));
    }

    /// As above; it also ends when `stop` is requested.
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_for(std::stop_token const& stop, std::chrono::duration<Rep, Period> const& d)
    {
        require_lockable();
        return note(mutex_->try_lock_for(stop, d));
    }

    /// As `try_lock_for`, until a point of any clock.
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_until(std::chrono::time_point<Clock, Duration> const& t)
    {
        require_lockable();
        return note(mutex_->try_lock_until(t));
    }

    /// As above; it also ends when `stop` is requested.
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_until(std::stop_token const& stop, std::chrono::time_point<Clock, Duration> const& t)
    {
        require_lockable();
        return note(mutex_->try_lock_until(stop, t));
    }

    /// Throws: `std::system_error` (`operation_not_permitted`) if nothing is owned; nothing else.
    void unlock()
    {
        if (!owns_) throw std::system_error{std::make_error_code(std::errc::operation_not_permitted)};
        owns_ = false;
        mutex_->unlock();
    }

    /// Effects: unlocks, and sets `ec` to what happened: see `Lock`.
    void unlock(std::error_code& ec)
    {
        if (!owns_) {
            ec = make_error_code(errc::not_owner);
            return;
        }
        owns_ = false;
        mutex_->unlock(ec);
    }

    /// Effects: exchanges the locks of both.
    void swap(leased_lock& other) noexcept
    {
        std::swap(mutex_, other.mutex_);
        std::swap(lease_, other.lease_);
        std::swap(owns_, other.owns_);
    }

    /// Effects: forgets the mutex, as `std::unique_lock::release` does; it stays locked. Returns: the mutex, which the
    /// caller has to unlock.
    [[nodiscard]] M* release() noexcept
    {
        owns_ = false;
        return std::exchange(mutex_, nullptr);
    }

    /// Returns: the mutex; null if there is none.
    [[nodiscard]] M* mutex() const noexcept { return mutex_; }
    /// Returns: whether the guard will unlock the mutex. It does not say whether the lease was lost: see `still_held`.
    [[nodiscard]] bool owns_lock() const noexcept { return owns_; }
    /// Returns: `owns_lock()`.
    [[nodiscard]] explicit operator bool() const noexcept { return owns_; }

    /// Effects, returns: as `Lock`'s `extend`.
    bool extend(std::chrono::milliseconds ttl, std::error_code& ec)
    {
        if (owns_) return mutex_->extend(ttl, ec);
        ec = make_error_code(errc::not_owner);
        return false;
    }

    /// Throws: `error` with the code of the overload above.
    void extend(std::chrono::milliseconds ttl)
    {
        if constexpr (requires { mutex_->extend(ttl); })
            if (owns_) return mutex_->extend(ttl);
        std::error_code ec;
        if (extend(ttl, ec)) return;
        std::string name;
        if constexpr (requires(M const& m) { std::string{m.name()}; })
            if (mutex_) name = mutex_->name();
        throw detail::error_of(name, {ec, "extend to " + std::to_string(ttl.count()) + " ms"});
    }

private:
    void require_lockable() const
    {
        if (!mutex_) throw std::system_error{std::make_error_code(std::errc::operation_not_permitted)};
        if (owns_) throw std::system_error{std::make_error_code(std::errc::resource_deadlock_would_occur)};
    }

    bool note(bool locked)
    {
        if (locked) lease_ = mutex_->lease();
        return owns_ = locked;
    }

    M* mutex_ = nullptr;
    bool owns_ = false;
};

/// Effects: `a.swap(b)`.
template <Lock M>
void swap(leased_lock<M>& a, leased_lock<M>& b) noexcept
{
    a.swap(b);
}

}  // namespace holdfast
