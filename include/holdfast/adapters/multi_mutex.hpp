// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/async_object.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/insertion_sort.hpp>
#include <holdfast/core/joint_hold.hpp>
#include <holdfast/core/joint_object.hpp>
#include <holdfast/core/lease.hpp>
#include <holdfast/core/lock.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/mutex.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI {

/// Several locks, of one store or of several, that are taken together: all of them or none. Meets `Lock`, whose clauses
/// hold for all of them. The locks must outlive it, and are not to be locked or unlocked by themselves while it holds
/// them.
///
/// They are taken one after the other, by what the servers call them, whatever order they are given in; those of one
/// name by the names of their servers. So clients that take several locks only so, and name the servers alike, in
/// whatever order, cannot wait for each other in a circle. A lock that is given twice is one, also as two objects or of
/// two clients that name its servers alike. If two clients name them differently, each call that locks fails with
/// `std::errc::resource_deadlock_would_occur`: it would wait for itself.
///
/// Locks of one `redis::client` are first tried by one request, which takes all of them or none: if all are free, and
/// no client waits for one of them, that is all it takes. Otherwise, and for asynchronous calls, they are waited for in
/// order, as above.
///
/// - While a lock is waited for, those before it are held, and their leases renewed; one that is not, or has a
///   `max_hold`, must outlast the wait. If one of these is lost meanwhile, all are given back as soon as the others are
///   granted, and taken anew, by the same deadline.
/// - If a lock cannot be taken, those before it are given back: one operation timeout for each, at most.
/// - A lease that is lost ends the hold: `still_held()` is false and the tokens of `lost_token()` are stopped. The
///   other locks are kept until it is unlocked.
/// - Each lock has a fencing token of its own, `lease_of(lock).fencing_token()`, which its own resource checks;
///   `lease().fencing_token()` is 0.
///
/// Source: the total order is that of Havender, "Avoiding deadlock in multitasking systems", IBM Systems Journal 1968.
class multi_mutex {
public:
    /// Effects: prepares to take `locks` together; no I/O.
    template <std::derived_from<mutex>... M>
        requires(sizeof...(M) > 0)
    explicit multi_mutex(M&... locks) : multi_mutex{std::vector<mutex*>{&locks...}}
    {
    }

    /// As above, for as many as a program finds out. Throws: `error` (`misconfigured`) if there are none.
    explicit multi_mutex(std::vector<mutex*> const& locks)
    {
        if (locks.empty()) throw error{errc::misconfigured, "several locks: none is given"};
        for (auto* const one : locks) all_.push_back({one, one->object_->address()});
        auto const by_address = [](auto const& a, auto const& b) { return a.address < b.address; };
        // mutant: several locks taken in the order in which they were named
        detail::insertion_sort(all_.begin(), all_.end(), by_address);
        std::vector<std::shared_ptr<detail::lock_object>> objects;
        member const* last = nullptr;
        for (auto const& one : all_) {
            if (last && last->address == one.address) continue;
            last = &one;
            first_.push_back(one.lock);
            objects.push_back(one.lock->object_);
            name_ += (name_.empty() ? "" : ", ") + one.lock->name();
        }
        joint_ = first_.front()->object_->make_joint(std::move(objects), name_);
    }

    multi_mutex(multi_mutex const&) = delete;
    multi_mutex& operator=(multi_mutex const&) = delete;

    /// Effects: `unlock()`, if they are held. Asynchronous calls that have not ended are cancelled.
    ~multi_mutex()
    {
        joint_->close();
        unlock();
    }

    /// Effects: waits until all are held. Throws: what `lock()` of one throws; then none is held.
    void lock() { static_cast<void>(take({}, {})); }

    /// Effects: waits until all are held or `stop` is requested. Returns: whether all are held.
    [[nodiscard]] bool lock(std::stop_token const& stop) { return take({}, stop); }

    /// Effects: asks once for all or, if one request cannot do that, once for each, up to one that is not free; see
    /// `blocker()`. Returns: whether all are held.
    [[nodiscard]] bool try_lock() { return take({.once = true}, {}); }

    /// Effects: waits until all are held, for `d` at most in all. Returns: whether all are held.
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_for(std::chrono::duration<Rep, Period> const& d)
    {
        return try_lock_for(std::stop_token{}, d);
    }

    /// As above; it also ends when `stop` is requested.
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_for(std::stop_token const& stop, std::chrono::duration<Rep, Period> const& d)
    {
        return take(detail::patience::in(d), stop);
    }

    /// As `try_lock_for`, until a point of any clock. That clock is read once.
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_until(std::chrono::time_point<Clock, Duration> const& t)
    {
        return try_lock_until(std::stop_token{}, t);
    }

    /// As above; it also ends when `stop` is requested.
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_until(std::stop_token const& stop, std::chrono::time_point<Clock, Duration> const& t)
    {
        return take(detail::patience::until(t), stop);
    }

    /// Effects: unlocks all, the last one taken first. No effect, and no report, if they are not held: only
    /// `unlock(ec)` says so.
    void unlock() noexcept
    {
        auto const hold = let_go();
        if (!hold) return;
        for (auto i = first_.size(); i-- > 0;) first_[i]->unlock();  // the next holder may destroy this after the last
        hold->released();
    }

    /// As `unlock()`. Postconditions: `ec` is no error; `not_owner`; `lease_lost` if one of them was lost before; or
    /// else why the outcome of one is not known.
    void unlock(std::error_code& ec) noexcept
    {
        auto const hold = let_go();
        auto worst = hold ? std::error_code{} : make_error_code(errc::not_owner);
        for (auto i = hold ? first_.size() : 0; i-- > 0;) {
            std::error_code why;
            first_[i]->unlock(why);
            worst = detail::worse(worst, why);
        }
        if (hold) hold->released();
        ec = worst;
    }

    /// Effects: extends all, one after the other, up to one that fails. Returns: whether all have a lease of `ttl` now;
    /// otherwise `ec` says why the first that failed has not.
    bool extend(std::chrono::milliseconds ttl, std::error_code& ec)
    {
        ec = joint_->held() ? std::error_code{} : make_error_code(errc::not_owner);
        return !ec && std::all_of(first_.begin(), first_.end(), [&](mutex* one) { return one->extend(ttl, ec); });
    }

    /// As above. Throws: `error` with that code.
    void extend(std::chrono::milliseconds ttl)
    {
        if (!joint_->held()) throw detail::error_of(name_, {make_error_code(errc::not_owner), {}});
        for (auto* const one : first_) one->extend(ttl);
    }

    /// Returns: a handle to the present hold of all; an empty one if they are not held.
    [[nodiscard]] holdfast::lease lease() const { return holdfast::lease{joint_->held()}; }

    /// Returns: a handle to the present hold of `one`, which this was made with: for its fencing token. If it was given
    /// twice, that of both. An empty handle if it is not held. A guard of an asynchronous call has that hold, too.
    [[nodiscard]] holdfast::lease lease_of(mutex const& one) const
    {
        auto const place = std::find_if(all_.begin(), all_.end(), [&](auto const& a) { return a.lock == &one; });
        if (place == all_.end()) return {};
        return std::find_if(all_.begin(), place, [&](auto const& a) { return a.address == place->address; })
            ->lock->lease();
    }

    /// Effects: as `lock()`, but returns at once; `f(ec)` is called when all are held (no error) or none will be, as by
    /// `mutex::async_lock`. Throws: if memory or a thread is missing; then `f` is not called.
    void async_lock(std::function<void(std::error_code)> f, std::stop_token stop = {})
    {
        detail::begin_lock_of(*joint_, {}, std::move(stop), detail::with_code(std::move(f)));
    }

    /// As above, waiting for `d` at most in all: `f(ec, held)`, with no error and `false` if the time passed while
    /// others held one of them.
    template <class Rep, class Period>
    void async_try_lock_for(std::chrono::duration<Rep, Period> const& d, std::function<void(std::error_code, bool)> f,
                            std::stop_token stop = {})
    {
        detail::begin_lock_of(*joint_, detail::patience::in(d), std::move(stop), detail::in_time(std::move(f)));
    }

    /// Effects: as `unlock(ec)`, but returns at once; `f(ec)` is called with its result, as above.
    void async_unlock(std::function<void(std::error_code)> f) { detail::begin_unlock_of(*joint_, std::move(f)); }

    /// Returns: the names, in the order in which they are taken, with commas between.
    [[nodiscard]] std::string const& name() const noexcept { return name_; }

    /// Returns: the name of the lock that was not free when an attempt of a thread failed last; empty if none has.
    [[nodiscard]] std::string blocker() const
    {
        auto const* const one = blocker_.load();
        return one ? one->name() : std::string{};
    }

    /// Returns: for about how long that lock is still kept for its holder, if that does not renew it, or for a client
    /// that waits: as its store said with the refusal. Nothing: it did not, as of a session of ZooKeeper, a key without
    /// an expiry, or a holder of the same client.
    [[nodiscard]] std::optional<std::chrono::milliseconds> blocker_remaining() const
    {
        auto const until = blocked_until_.load();
        if (until == boot_clock::time_point{}) return std::nullopt;
        return std::chrono::ceil<std::chrono::milliseconds>(std::max(until, boot_clock::now()) - boot_clock::now());
    }

private:
    friend struct detail::async_access;

    using outcome = detail::joint_outcome::kind;

    struct member {
        mutex* lock;
        std::string address;
    };

    /// What was taken in vain is free at once, whatever its `min_hold`.
    struct gives_back {
        void operator()(mutex* one) const noexcept
        {
            std::error_code ignored;  // it ends with its lease
            // mutant: what was taken in vain kept
            one->object_->unlock(ignored);
        }
    };

    bool take(detail::patience p, std::stop_token const& stop)
    {
        failure why;
        p.why_not = &why;
        p.told_later = true;
        for (;;) {
            auto const made = std::make_shared<detail::joint_hold>(first_.size());
            std::vector<std::unique_ptr<mutex, gives_back>> taken;  // given back unless all are
            taken.reserve(first_.size());
            auto const at_once = joint_->try_lock_all(p, stop);
            if (at_once.what == outcome::refused) return blocked_by(*first_[at_once.blocker], why.held_until);
            for (auto* const one : first_) {
                if (at_once.what != outcome::held && !joint_->lock(taken.size(), p, stop))
                    return stop.stop_requested() ? false : blocked_by(*one, why.held_until);
                taken.emplace_back(one);
            }
            for (auto* const one : first_) made->add(one->lease(), made);
            if (made->still_held()) {
                joint_->keep(made);
                for (auto& one : taken) one.release()->object_->begin_use();
                return true;
            }
            if (p.once || boot_clock::now() >= p.deadline) return false;
        }
    }

    /// Returns: false.
    bool blocked_by(mutex const& one, boot_clock::time_point until) noexcept
    {
        blocker_ = &one;
        blocked_until_ = until;
        return false;
    }

    /// Effects: ends the hold. Returns: it, whose loss is announced when all are given back; null: there is none.
    std::shared_ptr<detail::joint_hold> let_go() noexcept
    {
        auto hold = joint_->let_go();
        if (hold) hold->release();
        return hold;
    }

    [[nodiscard]] std::shared_ptr<detail::async_source> async_source() const noexcept { return joint_; }

    std::vector<member> all_;    // as given, sorted
    std::vector<mutex*> first_;  // those that are taken, in order: of each lock, the first that was given
    std::string name_;
    std::shared_ptr<detail::joint_object> joint_;
    std::atomic<mutex const*> blocker_{nullptr};
    std::atomic<boot_clock::time_point> blocked_until_{};  // 0: not known
};

static_assert(Lock<multi_mutex>);

}  // namespace holdfast
