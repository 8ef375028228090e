// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/lease.hpp>
#include <holdfast/core/lock.hpp>
#include <holdfast/core/name.hpp>
#include <holdfast/core/options.hpp>

#include <atomic>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI {

/// A lock that the thread that has it may lock again. Like `std::recursive_timed_mutex`, it is free when the same
/// thread has unlocked it as often as it was locked. Locking again sends nothing.
///
/// A lease that was lost is lost for all levels: locking again then throws `error` (`lease_lost`), since the section it
/// would guard is no longer exclusive.
template <Lock M>
class recursive_mutex {
public:
    /// Effects: makes the mutex from what `M` is made from.
    template <class... Args>
        requires std::constructible_from<M, Args...>
    explicit(sizeof...(Args) == 1)
        recursive_mutex(Args&&... args)  // NOLINT(google-explicit-constructor): the check does not read the condition
        : inner_(std::forward<Args>(args)...)
    {
    }

    /// As above, for options in braces.
    template <class Source>
        requires std::constructible_from<M, Source&, std::string_view, lock_options>
    recursive_mutex(Source& on, std::string_view name, lock_options options) : inner_(on, name, std::move(options))
    {
    }

    recursive_mutex(recursive_mutex const&) = delete;
    recursive_mutex& operator=(recursive_mutex const&) = delete;

    /// Effects: waits until this thread has the lock. Throws: as `M`; `error` (`lease_lost`), see above.
    void lock()
    {
        if (locked_again()) return;
        inner_.lock();
        first();
    }

    /// Effects: waits until this thread has the lock or `stop` is requested. Returns: whether it has it.
    [[nodiscard]] bool lock(std::stop_token const& stop) { return locked_again() || first_if(inner_.lock(stop)); }
    /// Effects: asks once, if this thread does not have the lock. Returns: whether it has it.
    [[nodiscard]] bool try_lock() { return locked_again() || first_if(inner_.try_lock()); }

    /// Effects: waits until this thread has the lock, for `d` at most. Returns: whether it has it.
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_for(std::chrono::duration<Rep, Period> const& d)
    {
        return locked_again() || first_if(inner_.try_lock_for(d));
    }

    /// As above; it also ends when `stop` is requested.
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_for(std::stop_token const& stop, std::chrono::duration<Rep, Period> const& d)
    {
        return locked_again() || first_if(inner_.try_lock_for(stop, d));
    }

    /// As `try_lock_for`, until a point of any clock.
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_until(std::chrono::time_point<Clock, Duration> const& t)
    {
        return locked_again() || first_if(inner_.try_lock_until(t));
    }

    /// As above; it also ends when `stop` is requested.
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_until(std::stop_token const& stop, std::chrono::time_point<Clock, Duration> const& t)
    {
        return locked_again() || first_if(inner_.try_lock_until(stop, t));
    }

    /// Effects: ends one level; the last one unlocks. No effect, and no report, if this thread does not have the
    /// lock: only `unlock(ec)` says so.
    void unlock() noexcept
    {
        if (last()) inner_.unlock();
    }

    /// As `unlock()`. Postconditions: `ec` is no error while levels are left, `not_owner` if this thread does not have
    /// the lock, and otherwise what `M` says.
    void unlock(std::error_code& ec) noexcept
    {
        ec = mine() ? std::error_code{} : make_error_code(errc::not_owner);
        if (last()) inner_.unlock(ec);
    }

    /// As `M`'s; `not_owner` if this thread does not have the lock.
    bool extend(std::chrono::milliseconds ttl, std::error_code& ec)
    {
        if (mine()) return inner_.extend(ttl, ec);
        ec = make_error_code(errc::not_owner);
        return false;
    }

    /// As above, if `M` has it. Throws: `error` with that code.
    void extend(std::chrono::milliseconds ttl)
        requires requires(M& m) { m.extend(ttl); }
    {
        if (!mine()) refuse(errc::not_owner, "this thread does not have it");
        inner_.extend(ttl);
    }

    /// Returns: a handle to the present hold; an empty one if the lock is not held.
    [[nodiscard]] holdfast::lease lease() const { return inner_.lease(); }

    /// Returns: the name of `M`, if it has one.
    [[nodiscard]] std::string const& name() const noexcept
        requires requires(M const& m) {
            {
                m.name()
            } -> std::same_as<std::string const&>;
        }
    {
        return inner_.name();
    }

    /// Returns: how often this thread has locked it.
    [[nodiscard]] std::size_t depth() const noexcept { return mine() ? depth_ : 0; }

private:
    [[nodiscard]] bool mine() const noexcept
    {
        return owner_.load(std::memory_order_relaxed) == std::this_thread::get_id();
    }

    bool locked_again()
    {
        if (!mine()) return false;
        if (!inner_.lease().still_held()) refuse(errc::lease_lost, "it cannot be locked again before it is unlocked");
        ++depth_;
        return true;
    }

    [[noreturn]] void refuse(errc code, char const* why) const
    {
        std::string name;
        if constexpr (requires { this->name(); }) name = this->name();
        throw detail::error_of(name, {make_error_code(code), why});
    }

    void first() noexcept
    {
        depth_ = 1;
        owner_.store(std::this_thread::get_id(), std::memory_order_relaxed);
    }

    bool first_if(bool locked) noexcept
    {
        if (locked) first();
        return locked;
    }

    bool last() noexcept
    {
        if (!mine() || --depth_ > 0) return false;
        owner_.store({}, std::memory_order_relaxed);
        return true;
    }

    M inner_;
    std::atomic<std::thread::id> owner_{};
    std::size_t depth_ = 0;
};

}  // namespace holdfast
