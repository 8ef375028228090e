// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/adapters/semaphore.hpp>
#include <holdfast/core/abi.hpp>
#include <holdfast/core/async_object.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/joint_hold.hpp>
#include <holdfast/core/joint_release.hpp>
#include <holdfast/core/lease.hpp>
#include <holdfast/core/lease_access.hpp>
#include <holdfast/core/name.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/core/store.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <stop_token>
#include <system_error>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI {

/// Several permits of a `semaphore`, which are taken together, all or none, and which the destructor gives back.
///
///     if (holdfast::leased_permits seats{licences, 2, 500ms}) render(seats.slots());
///
/// The hold lasts as long as each permit: the first one that is lost ends it (`still_held()`, `lost_token()`); the
/// others are kept until the release. Each slot has fencing tokens of its own, `lease_of(i).fencing_token()`;
/// `fencing_token()` is 0.
///
/// Constructors and members that wait throw what the members of `semaphore` throw. The end of the semaphore gives the
/// permits back, too.
class leased_permits : public lease_access {
public:
    leased_permits() noexcept = default;

    /// Effects: `s.acquire(n)`.
    [[nodiscard]] leased_permits(semaphore& s, std::ptrdiff_t n) { take(s, n, {}, {}); }

    /// Effects: `s.try_acquire(n)`.
    [[nodiscard]] leased_permits(semaphore& s, std::ptrdiff_t n, std::try_to_lock_t) { take(s, n, {.once = true}, {}); }

    /// Effects: `s.try_acquire_for(n, d)`.
    template <class Rep, class Period>
    [[nodiscard]] leased_permits(semaphore& s, std::ptrdiff_t n, std::chrono::duration<Rep, Period> const& d)
        : leased_permits{s, n, std::stop_token{}, d}
    {
    }

    /// Effects: `s.try_acquire_until(n, t)`.
    template <class Clock, class Duration>
    [[nodiscard]] leased_permits(semaphore& s, std::ptrdiff_t n, std::chrono::time_point<Clock, Duration> const& t)
    {
        take(s, n, detail::patience::until(t), {});
    }

    /// Effects: `s.acquire(n, stop)`.
    [[nodiscard]] leased_permits(semaphore& s, std::ptrdiff_t n, std::stop_token const& stop) { take(s, n, {}, stop); }

    /// Effects: `s.try_acquire_for(n, stop, d)`.
    template <class Rep, class Period>
    [[nodiscard]] leased_permits(semaphore& s, std::ptrdiff_t n, std::stop_token const& stop,
                                 std::chrono::duration<Rep, Period> const& d)
    {
        take(s, n, detail::patience::in(d), stop);
    }

    /// Effects: takes over the `n` permits that `s.release(n)` would give back. Postconditions: owns none if there are
    /// fewer.
    [[nodiscard]] leased_permits(semaphore& s, std::ptrdiff_t n, std::adopt_lock_t)
    {
        own(n, [&] { return s.permits_->let_go(static_cast<std::size_t>(std::max<std::ptrdiff_t>(n, 0))); });
    }

    /// Effects: takes over the permits of `other`, which owns none afterwards.
    leased_permits(leased_permits&& other) noexcept
        : lease_access{std::move(other)},
          objects_{std::exchange(other.objects_, {})},
          slots_{std::exchange(other.slots_, {})},
          joint_{std::exchange(other.joint_, nullptr)}
    {
    }

    /// Effects: gives the permits back, and takes over those of `other`, which owns none afterwards.
    leased_permits& operator=(leased_permits&& other) noexcept
    {
        leased_permits{std::move(other)}.swap(*this);
        return *this;
    }

    /// Effects: `release()`.
    ~leased_permits() { release(); }

    /// Effects: gives the permits back, if they are owned. It waits for the answer to the last one only; that, and that
    /// the lease of one was lost before, is reported to `on_error`.
    void release() noexcept
    {
        let_go();
        while (!objects_.empty()) {
            auto const one = std::move(objects_.back());
            objects_.pop_back();
            if (one->closed()) continue;
            objects_.empty() ? one->unlock() : one->give_back(one->lease());
        }
        released();
    }

    /// As above, and waits for all answers. Postconditions: `ec` is as `semaphore::release(n, ec)` sets it.
    void release(std::error_code& ec) noexcept
    try {
        ec = make_error_code(errc::not_owner);
        if (objects_.empty()) return;
        auto const all = std::make_shared<detail::joint_release>();
        for (auto const& one : objects_) all->add(one, one->lease());
        let_go();
        objects_.clear();
        ec = all->give_back();
        released();
    } catch (std::bad_alloc const&) {
        ec = std::make_error_code(std::errc::not_enough_memory);  // nothing was given back
    }

    /// Effects: exchanges the permits of both.
    void swap(leased_permits& other) noexcept
    {
        std::swap(objects_, other.objects_);
        std::swap(lease_, other.lease_);
        std::swap(slots_, other.slots_);
        std::swap(joint_, other.joint_);
    }

    /// Returns: whether the guard will give permits back. It does not say whether one was lost: see `still_held`.
    [[nodiscard]] bool owns_permits() const noexcept { return !objects_.empty(); }
    /// Returns: `owns_permits()`.
    [[nodiscard]] explicit operator bool() const noexcept { return owns_permits(); }

    /// Returns: which permits they are, each 0 to `max() - 1`. After the release, which they were.
    [[nodiscard]] std::vector<std::size_t> const& slots() const noexcept { return slots_; }

    /// Returns: the lease of the permit `slots()[i]`; an empty one if none is owned. Throws: `std::out_of_range`.
    [[nodiscard]] holdfast::lease lease_of(std::size_t i) const
    {
        return objects_.empty() ? holdfast::lease{} : objects_.at(i)->lease();
    }

    /// Effects: extends all, one after the other, up to one that fails. Returns: whether all have a lease of `ttl` now;
    /// otherwise `ec` says why the first that failed has not.
    bool extend(std::chrono::milliseconds ttl, std::error_code& ec)
    {
        ec = objects_.empty() ? make_error_code(errc::not_owner) : std::error_code{};
        return !ec &&
               std::all_of(objects_.begin(), objects_.end(), [&](auto const& one) { return one->extend(ttl, ec); });
    }

    /// As above. Throws: `error` with that code.
    void extend(std::chrono::milliseconds ttl)
    {
        if (objects_.empty())
            throw detail::error_of({}, {make_error_code(errc::not_owner), "extend: no permit is owned"});
        for (auto const& one : objects_) one->extend(ttl);
    }

private:
    void take(semaphore& s, std::ptrdiff_t n, detail::patience const& p, std::stop_token const& stop)
    {
        own(n, [&] { return s.permits_->take(n, p, stop); });
    }

    /// Effects: owns the `n` slots that `taken` returns, or none.
    template <class Taken>
    void own(std::ptrdiff_t n, Taken const& taken)
    {
        auto const room = static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(n, 0, detail::semaphore_object::most));
        auto made = std::make_shared<detail::joint_hold>(room);
        objects_.reserve(room);
        slots_.reserve(room);
        for (auto const& one : taken()) {
            slots_.push_back(one.slot);
            objects_.push_back(one.lock);
            made->add(objects_.back()->lease(), made);
        }
        if (slots_.empty()) return;
        joint_ = std::move(made);
        lease_ = holdfast::lease{joint_};
        if (!joint_->still_held()) joint_->lose();
    }

    /// Effects: what is lost from now on is not announced until `released`.
    void let_go() noexcept
    {
        if (joint_) joint_->release();
    }

    void released() noexcept
    {
        if (auto const hold = std::exchange(joint_, nullptr)) hold->released();
    }

    std::vector<std::shared_ptr<detail::lock_object>> objects_;
    std::vector<std::size_t> slots_;
    std::shared_ptr<detail::joint_hold> joint_;
};

/// Effects: `a.swap(b)`.
inline void swap(leased_permits& a, leased_permits& b) noexcept { a.swap(b); }

}  // namespace holdfast
