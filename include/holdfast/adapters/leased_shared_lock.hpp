// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/adapters/shared_mutex.hpp>
#include <holdfast/core/abi.hpp>
#include <holdfast/core/async_object.hpp>
#include <holdfast/core/hold_guard.hpp>
#include <holdfast/core/shared_object.hpp>

#include <chrono>
#include <memory>
#include <mutex>
#include <stop_token>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI {

/// A shared hold of a `shared_mutex`, which the destructor gives back, and what its holder may ask about it, as with
/// `leased_lock`. The hold is its own, whatever else the thread holds; so, unlike `std::shared_lock`, it has no member
/// that locks again, and none that leaves the hold to the mutex.
///
///     if (holdfast::leased_shared_lock reading{prices, 500ms}) {
///         cache.fill(row, reading.fencing_token());
///         if (!reading.still_held()) cache.drop(row);
///     }
///
/// `fencing_token()` is greater than that of every writer before; see `shared_mutex`.
///
/// Constructors that wait throw what the members of `shared_mutex` throw. A guard without a name,
/// `holdfast::leased_shared_lock{prices};`, gives back at the end of its statement: the compiler warns. The end of the
/// mutex gives the hold back, too.
class leased_shared_lock : public hold_guard {
public:
    leased_shared_lock() noexcept = default;

    /// Effects: waits until the lock is held, together with other readers.
    [[nodiscard]] explicit leased_shared_lock(shared_mutex& m) { take(m, {}, {}); }

    /// Effects: asks once. The guard owns a hold if no writer has the lock or waits for it.
    [[nodiscard]] leased_shared_lock(shared_mutex& m, std::try_to_lock_t) { take(m, {.once = true}, {}); }

    /// Effects: waits until the lock is held, for `d` at most.
    template <class Rep, class Period>
    [[nodiscard]] leased_shared_lock(shared_mutex& m, std::chrono::duration<Rep, Period> const& d)
    {
        take(m, detail::patience::in(d), {});
    }

    /// Effects: waits until the lock is held, until `t` at the latest.
    template <class Clock, class Duration>
    [[nodiscard]] leased_shared_lock(shared_mutex& m, std::chrono::time_point<Clock, Duration> const& t)
    {
        take(m, detail::patience::until(t), {});
    }

    /// Effects: waits until the lock is held, or `stop` is requested.
    [[nodiscard]] leased_shared_lock(shared_mutex& m, std::stop_token const& stop) { take(m, {}, stop); }

    /// Effects: as above, for `d` at most.
    template <class Rep, class Period>
    [[nodiscard]] leased_shared_lock(shared_mutex& m, std::stop_token const& stop,
                                     std::chrono::duration<Rep, Period> const& d)
    {
        take(m, detail::patience::in(d), stop);
    }

    /// Effects: takes over the hold that `m.unlock_shared()` would give back, as one that was taken asynchronously.
    /// Postconditions: owns none if there is none.
    [[nodiscard]] leased_shared_lock(shared_mutex& m, std::adopt_lock_t) { own(m, m.readers_->let_go()); }

    /// Effects: takes over the hold of `other`, which owns none afterwards.
    leased_shared_lock(leased_shared_lock&& other) noexcept
        : hold_guard{std::move(other)}, holds_{std::exchange(other.holds_, nullptr)}
    {
    }

    /// Effects: unlocks, and takes over the hold of `other`, which owns none afterwards.
    leased_shared_lock& operator=(leased_shared_lock&& other) noexcept
    {
        leased_shared_lock{std::move(other)}.swap(*this);
        return *this;
    }

    /// Effects: `unlock()`.
    ~leased_shared_lock() { unlock(); }

    /// Effects: gives the hold back, if there is one, as `shared_mutex::unlock_shared` does; errors are reported to
    /// `on_error`.
    void unlock() noexcept { put_back(give_back()); }

    /// As above. Postconditions: `ec` is as `shared_mutex::unlock_shared(ec)` sets it.
    void unlock(std::error_code& ec) noexcept { put_back(give_back(ec)); }

    /// Effects: exchanges the holds of both.
    void swap(leased_shared_lock& other) noexcept
    {
        hold_guard::swap(other);
        std::swap(holds_, other.holds_);
    }

    /// Returns: whether the guard will give a hold back. It does not say whether the lease was lost: see `still_held`.
    [[nodiscard]] bool owns_lock() const noexcept { return static_cast<bool>(*this); }

private:
    void take(shared_mutex& m, detail::patience const& p, std::stop_token const& stop)
    {
        own(m, m.readers_->lock(p, stop));
    }

    void own(shared_mutex const& m, object one)
    {
        hold_guard::own(std::move(one));
        if (owns_lock()) holds_ = m.readers_;
    }

    void put_back(object const& one) noexcept
    {
        auto const holds = std::exchange(holds_, nullptr);
        if (one) holds->put_back(one);
    }

    std::shared_ptr<detail::shared_object> holds_;
};

/// Effects: `a.swap(b)`.
inline void swap(leased_shared_lock& a, leased_shared_lock& b) noexcept { a.swap(b); }

}  // namespace holdfast
