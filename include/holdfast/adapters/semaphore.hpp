// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/adapters/semaphore_calls.hpp>
#include <holdfast/core/abi.hpp>
#include <holdfast/core/async_object.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/joint_release.hpp>
#include <holdfast/core/lock.hpp>
#include <holdfast/core/options.hpp>
#include <holdfast/core/semaphore_object.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/lock/report.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <new>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI {

class leased_permit;
class leased_permits;

/// At most `max()` permits of the name `name()` in a store, over all processes. The members have the names of
/// `std::counting_semaphore`; a permit is a lease, which is renewed while it is held, and may be lost. Any number of
/// threads may use one object and hold permits of it. The object may outlive its store. The destructor gives back all
/// permits that were taken from it, and waits for one operation timeout at most.
///
///     holdfast::redis::semaphore jobs{redis, "jobs", 3};
///     holdfast::leased_permit slot{jobs, 500ms};
///
/// Each permit is a slot, a lock of the name `jobs#0`, `jobs#1`, and so on. So a semaphore is as safe as a mutex of its
/// store, on Redlock's masters, too, and each slot has fencing tokens of its own.
///
/// All clients have to say the same `max` for a name. The store keeps the number that is in use, and every acquire of a
/// client that says another one throws `misconfigured`. The store forgets the number when the last lease of a permit
/// could have ended; in ZooKeeper, when the last `semaphore` of that number is gone. `resize` changes it.
///
/// A thread that waits is in the queues of all slots, and is woken by the release of any: `max()` requests for each
/// wait. If it is granted two, it gives one back; another thread that tries just then may find no permit free.
///
/// Several permits are taken all or none. Callers that wait for several have turns, one caller of all clients at a
/// time, so that no two wait for each other; the turn is the lock `jobs#batch`. A caller that already holds permits and
/// waits for more can wait for another that does the same: ask for all at once.
class semaphore : public semaphore_calls {
public:
    /// Effects: prepares a semaphore; no I/O. `options` are those of each slot.
    /// Throws: `error` (`misconfigured`) if the name or an option cannot be used, or `max` is not 1 to 1,000.
    semaphore(store const& in, std::string_view name, std::ptrdiff_t max, lock_options const& options = {})
        : semaphore{in.locks_->make_semaphore(name, max, options), options}
    {
    }

    /// Effects: gives back all permits. Asynchronous calls that have not ended are cancelled.
    ~semaphore() = default;

    /// Effects: waits until a permit is held.
    /// Throws: `error`: `unavailable` when no quorum could be asked for `unavailable_after`; `misconfigured` at once,
    /// also if the semaphore is in use with another number of permits.
    void acquire() { static_cast<void>(take(1, {}, {})); }

    /// Effects: waits until `n` permits are held: all, or none. Throws: as above; `misconfigured` if `n` is not 1 to
    /// `max()`.
    void acquire(std::ptrdiff_t n) { static_cast<void>(take(n, {}, {})); }

    /// Effects: waits until a permit is held or `stop` is requested. Returns: whether one is held.
    [[nodiscard]] bool acquire(std::stop_token const& stop) { return take(1, {}, stop); }

    /// As above, for `n` permits: all, or none.
    [[nodiscard]] bool acquire(std::ptrdiff_t n, std::stop_token const& stop) { return take(n, {}, stop); }

    /// Effects: tries each slot, until one is free. Returns: whether a permit is held; `false` when all are held, here
    /// or elsewhere. Also `false` for a moment to let others in, see `mutex::try_lock`; and perhaps during `resize`.
    /// Throws: `error`: `unavailable` if no slot could be asked; `misconfigured`.
    [[nodiscard]] bool try_acquire() { return take(1, {.once = true}, {}); }

    /// As above, for `n` permits. If fewer are free, those that were taken are given back, before this returns; if no
    /// answer comes, they end with their leases.
    [[nodiscard]] bool try_acquire(std::ptrdiff_t n) { return take(n, {.once = true}, {}); }

    /// Effects: waits until a permit is held, for `d` at most. Returns: whether one is held; by its deadline and one
    /// operation timeout. If one answer of the store takes longer than `d`, that answer comes on top.
    /// Throws: `error`: `unavailable` when no slot could be asked in that time; `misconfigured` at once.
    template <class Rep, class Period>
    [[nodiscard]] bool try_acquire_for(std::chrono::duration<Rep, Period> const& d)
    {
        return try_acquire_for(std::stop_token{}, d);
    }

    /// As above, for `n` permits: all, or none; `d` is for all of them together.
    template <class Rep, class Period>
    [[nodiscard]] bool try_acquire_for(std::ptrdiff_t n, std::chrono::duration<Rep, Period> const& d)
    {
        return take(n, detail::patience::in(d), {});
    }

    /// As above; it also ends when `stop` is requested.
    template <class Rep, class Period>
    [[nodiscard]] bool try_acquire_for(std::stop_token const& stop, std::chrono::duration<Rep, Period> const& d)
    {
        return take(1, detail::patience::in(d), stop);
    }

    /// As above, for `n` permits.
    template <class Rep, class Period>
    [[nodiscard]] bool try_acquire_for(std::ptrdiff_t n, std::stop_token const& stop,
                                       std::chrono::duration<Rep, Period> const& d)
    {
        return take(n, detail::patience::in(d), stop);
    }

    /// As `try_acquire_for`, until a point of any clock. That clock is read once.
    template <class Clock, class Duration>
    [[nodiscard]] bool try_acquire_until(std::chrono::time_point<Clock, Duration> const& t)
    {
        return try_acquire_until(std::stop_token{}, t);
    }

    /// As above, for `n` permits: all, or none.
    template <class Clock, class Duration>
    [[nodiscard]] bool try_acquire_until(std::ptrdiff_t n, std::chrono::time_point<Clock, Duration> const& t)
    {
        return take(n, detail::patience::until(t), {});
    }

    /// As above; it also ends when `stop` is requested.
    template <class Clock, class Duration>
    [[nodiscard]] bool try_acquire_until(std::stop_token const& stop, std::chrono::time_point<Clock, Duration> const& t)
    {
        return take(1, detail::patience::until(t), stop);
    }

    /// As above, for `n` permits.
    template <class Clock, class Duration>
    [[nodiscard]] bool try_acquire_until(std::ptrdiff_t n, std::stop_token const& stop,
                                         std::chrono::time_point<Clock, Duration> const& t)
    {
        return take(n, detail::patience::until(t), stop);
    }

    /// Effects: `release(ec)`; errors are reported to `on_error`.
    void release() noexcept
    {
        if (auto const one = permits_->let_go(1); !one.empty()) return one.front().lock->unlock();
        detail::report(on_error_, name(), {make_error_code(errc::not_owner), {}});
    }

    /// Effects: `release(n, ec)`; errors are reported to `on_error`.
    void release(std::ptrdiff_t n) noexcept
    {
        std::error_code why;
        auto const all = let_go(n, why);
        if (!all) return detail::report(on_error_, name(), {why, {}});
        static_cast<void>(all->give_back());
        all->tell_failures();  // the next holder may have destroyed this
    }

    /// Effects: gives back one of the permits that this object has by `acquire` and its siblings, whichever thread
    /// called them: one that is lost, if there is any, or else the one that it has had longest. It waits for the answer
    /// of the store, one operation timeout at most, unless a waiter of this process gets the permit. No effect if there
    /// is none. The permits of `leased_permit` are not among them. The next holder may destroy the object before this
    /// has returned.
    /// Postconditions: `ec` is no error, `lease_lost` or `not_owner`; or `unavailable` or `outcome_unknown`: then the
    /// permit is free after its ttl at the latest.
    void release(std::error_code& ec) noexcept
    {
        ec = make_error_code(errc::not_owner);
        if (auto const one = permits_->let_go(1); !one.empty()) one.front().lock->unlock(ec);
    }

    /// Effects: gives back `n` of the permits that this object has by `acquire` and its siblings, chosen as above; if
    /// it has fewer, none. They are given back together: it waits for all answers, one operation timeout at most.
    /// Postconditions: as above; `lease_lost` if one was lost; otherwise the failure of one. Each is free after its ttl
    /// at the latest. `not_owner`: nothing was given back.
    void release(std::ptrdiff_t n, std::error_code& ec) noexcept
    {
        if (auto const all = let_go(n, ec)) ec = all->give_back();
    }

    /// Returns: how many permits are held now, by any client. A slot that a client has taken out of use counts; one
    /// whose holder has died counts until its lease ends. One Redis and memory say a number of one moment. Of several
    /// masters, and of ZooKeeper, each slot is asked for at a time of its own during the call: every permit that is
    /// held all that time counts. Masters that do not answer are taken to have whatever makes a slot count.
    /// Throws: `error`: `unavailable` if no quorum could be asked; `misconfigured`: a right is missing.
    [[nodiscard]] std::ptrdiff_t permits_in_use() const { return permits_->permits_in_use(); }

    /// As above; 0 if `ec` is an error.
    [[nodiscard]] std::ptrdiff_t permits_in_use(std::error_code& ec) const noexcept
    {
        return detail::without_throwing(ec, [&] { return permits_in_use(); });
    }

    /// Effects: from now on there are `max` permits, whatever number was in use. Permits that are held stay so until
    /// they are released, also those that are too many. What waits for a permit of this object waits for one of the new
    /// number. Other objects keep the old number; they are told by their next acquire, and may be resized, too.
    /// If it fails, this object keeps the old number, and the store has the old or the new one; it may be repeated.
    /// Throws: `error`: `unavailable` if no quorum could be asked; `outcome_unknown`; `misconfigured` if `max` is not
    /// 1 to 1,000, or a right is missing.
    void resize(std::ptrdiff_t max) { permits_->resize(max); }

    /// As above. Postconditions: `ec` is no error, or the code that the other one throws.
    void resize(std::ptrdiff_t max, std::error_code& ec) noexcept
    {
        static_cast<void>(detail::without_throwing(ec, [&] {
            resize(max);
            return true;
        }));
    }

    /// Returns: how many permits there are, as this object says.
    [[nodiscard]] std::ptrdiff_t max() const noexcept { return permits_->max(); }

    /// Returns: the name that it was made with.
    [[nodiscard]] std::string const& name() const noexcept { return permits_->name(); }

protected:
    /// As the public one, with the permits of `object`.
    semaphore(std::shared_ptr<detail::semaphore_object> object, lock_options const& options)
        : semaphore_calls{std::move(object)}, on_error_{options.on_error}
    {
    }

private:
    friend class leased_permit;
    friend class leased_permits;

    bool take(std::ptrdiff_t n, detail::patience const& p, std::stop_token const& stop)
    {
        return permits_->keep(permits_->take(n, p, stop));
    }

    /// Returns: what gives back `n` permits, which are let go of; otherwise null, and `ec` says why.
    [[nodiscard]] std::shared_ptr<detail::joint_release> let_go(std::ptrdiff_t n, std::error_code& ec) noexcept
    {
        auto some = permits_->let_go(static_cast<std::size_t>(std::max<std::ptrdiff_t>(n, 0)));
        ec = make_error_code(errc::not_owner);
        if (some.empty()) return nullptr;
        try {
            auto all = std::make_shared<detail::joint_release>();
            for (auto const& one : some) all->add(one.lock, one.lock->lease());
            return all;
        } catch (std::bad_alloc const&) {
            permits_->keep(std::move(some));
            ec = std::make_error_code(std::errc::not_enough_memory);
            return nullptr;
        }
    }

    detail::error_hook on_error_;
};

static_assert(Semaphore<semaphore>);

}  // namespace holdfast
