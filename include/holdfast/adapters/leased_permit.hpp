// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/adapters/semaphore.hpp>
#include <holdfast/core/abi.hpp>
#include <holdfast/core/async_object.hpp>
#include <holdfast/core/hold_guard.hpp>
#include <holdfast/core/semaphore_object.hpp>

#include <chrono>
#include <cstddef>
#include <mutex>
#include <stop_token>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI {

/// One permit of a `semaphore`, which the destructor gives back, and what its holder may ask about it.
///
///     if (holdfast::leased_permit permit{jobs, 500ms}) {
///         workers[permit.slot()].run(permit.fencing_token());
///         if (!permit.still_held()) rollback();
///     }
///
/// `fencing_token()` is that of the slot: greater than that of every holder of this slot before. Tokens of different
/// slots cannot be compared, as their holders work at the same time: a resource keeps the greatest one of each slot.
///
/// Constructors and members that wait throw what the members of `semaphore` throw. A permit without a name,
/// `holdfast::leased_permit{jobs};`, is given back at the end of its statement: the compiler warns. The end of the
/// semaphore gives the permit back, too.
class leased_permit : public hold_guard {
public:
    leased_permit() noexcept = default;

    /// Effects: `s.acquire()`.
    [[nodiscard]] explicit leased_permit(semaphore& s) { take(s, {}, {}); }

    /// Effects: `s.try_acquire()`.
    [[nodiscard]] leased_permit(semaphore& s, std::try_to_lock_t) { take(s, {.once = true}, {}); }

    /// Effects: `s.try_acquire_for(d)`.
    template <class Rep, class Period>
    [[nodiscard]] leased_permit(semaphore& s, std::chrono::duration<Rep, Period> const& d)
        : leased_permit{s, std::stop_token{}, d}
    {
    }

    /// Effects: `s.try_acquire_until(t)`.
    template <class Clock, class Duration>
    [[nodiscard]] leased_permit(semaphore& s, std::chrono::time_point<Clock, Duration> const& t)
    {
        take(s, detail::patience::until(t), {});
    }

    /// Effects: `s.acquire(stop)`.
    [[nodiscard]] leased_permit(semaphore& s, std::stop_token const& stop) { take(s, {}, stop); }

    /// Effects: `s.try_acquire_for(stop, d)`.
    template <class Rep, class Period>
    [[nodiscard]] leased_permit(semaphore& s, std::stop_token const& stop, std::chrono::duration<Rep, Period> const& d)
    {
        take(s, detail::patience::in(d), stop);
    }

    /// Effects: takes over the permit that `s.release()` would give back, as one that was taken asynchronously: its
    /// lease can be asked then. Postconditions: owns none if there is none.
    [[nodiscard]] leased_permit(semaphore& s, std::adopt_lock_t) { own(s.permits_->let_go(1)); }

    /// Effects: takes over the permit of `other`, which owns none afterwards.
    leased_permit(leased_permit&& other) noexcept : hold_guard{std::move(other)}, slot_{std::exchange(other.slot_, 0)}
    {
    }

    /// Effects: gives the permit back, and takes over that of `other`, which owns none afterwards.
    leased_permit& operator=(leased_permit&& other) noexcept
    {
        leased_permit{std::move(other)}.swap(*this);
        return *this;
    }

    /// Effects: `release()`.
    ~leased_permit() { release(); }

    /// Effects: gives the permit back, if it is owned, as `semaphore::release` does; errors are reported to `on_error`.
    void release() noexcept { give_back(); }

    /// As above. Postconditions: `ec` is as `semaphore::release(ec)` sets it.
    void release(std::error_code& ec) noexcept { give_back(ec); }

    /// Effects: exchanges the permits of both.
    void swap(leased_permit& other) noexcept
    {
        hold_guard::swap(other);
        std::swap(slot_, other.slot_);
    }

    /// Returns: whether the guard will give a permit back. It does not say whether the lease was lost: see
    /// `still_held`.
    [[nodiscard]] bool owns_permit() const noexcept { return static_cast<bool>(*this); }

    /// Returns: which permit it is: 0 to `max() - 1`, as that was when it was taken. No two holders have the same.
    /// After the release, which one it was; 0 if there was none.
    [[nodiscard]] std::size_t slot() const noexcept { return slot_; }

private:
    void take(semaphore& s, detail::patience const& p, std::stop_token const& stop)
    {
        own(s.permits_->take(1, p, stop));
    }

    void own(detail::held_slots const& slots)
    {
        if (slots.empty()) return;
        slot_ = slots.front().slot;
        hold_guard::own(slots.front().lock);
    }

    std::size_t slot_ = 0;
};

/// Effects: `a.swap(b)`.
inline void swap(leased_permit& a, leased_permit& b) noexcept { a.swap(b); }

}  // namespace holdfast
