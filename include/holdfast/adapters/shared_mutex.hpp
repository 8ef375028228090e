// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/async_object.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/lease.hpp>
#include <holdfast/core/lock.hpp>
#include <holdfast/core/name.hpp>
#include <holdfast/core/options.hpp>
#include <holdfast/core/shared_object.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/lock/exclusive_calls.hpp>
#include <holdfast/lock/report.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string_view>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI {

class leased_shared_lock;

/// A read-write lock of the name `name()` in a store: held by one exclusively, or by many together. It has the members
/// of `std::shared_timed_mutex`, so `std::unique_lock` and `std::shared_lock` work; with its exclusive side it meets
/// `Lock`. Every hold is a lease of its own, which is renewed while it is held, and may be lost. Any number of objects,
/// in any number of processes, may have the same name. The object may outlive its store. The destructor gives back all
/// that is held.
///
///     holdfast::redis::shared_mutex prices{redis, "prices"};
///     { std::shared_lock reading{prices}; show(); }
///     { holdfast::leased_lock writing{prices}; store(writing.fencing_token()); }
///
/// - **Order.** A writer that waits keeps out new readers; when a writer leaves, the readers that wait go first, once:
///   `try_lock` is `false` until they have come. So neither starves the other. Writers are called in the order in which
///   they came. ZooKeeper: first come, first served.
/// - **Who unlocks.** Any thread may unlock either side. `unlock_shared` gives back a shared hold of the thread that
///   calls it, if it has one, or else the oldest of the object.
/// - **Taken again.** A thread that has a shared hold and calls `lock()` waits for itself. One that takes a second
///   shared hold may wait for a writer that waits for its first one.
/// - **A mutex of the same name** in the same store excludes both sides. It does not know that readers wait, nor they
///   that it waits.
/// - **Options.** Both sides have the same. `max_local_handoffs` has no effect: each section asks the store. `min_hold`
///   and `fair` are refused.
///
/// The fencing tokens of both sides come from one counter: that of a writer is greater than all before it, that of a
/// reader greater than those of all writers before it. A resource keeps two numbers: a write is refused if its token is
/// less than any seen; a read, or what is cached of it, if its token is less than the greatest of a write.
class shared_mutex : public exclusive_calls {
public:
    /// Effects: prepares a lock; no I/O.
    /// Throws: `error` (`misconfigured`) if the name or an option cannot be used, or the store has no such lock.
    shared_mutex(store const& in, std::string_view name, lock_options const& options = {})
        : shared_mutex{in.locks_->make_shared_mutex(name, options), options}
    {
    }

    /// Effects: gives back all that is held, and cancels what waits.
    ~shared_mutex() { readers_->close(); }

    // The shared side. For the exclusive one see `exclusive_calls`.

    /// Effects: waits until the lock is held, together with other readers.
    /// Throws: `error`: `unavailable` when no quorum could be asked for `unavailable_after`; `misconfigured` at once.
    void lock_shared() { static_cast<void>(keep(readers_->lock({}, {}))); }

    /// As above; it also ends when `stop` is requested. Returns: whether the lock is held.
    [[nodiscard]] bool lock_shared(std::stop_token const& stop) { return keep(readers_->lock({}, stop)); }

    /// Effects: asks once. Returns: whether the lock is held; `false` if a writer has it, or waits for it.
    /// Throws: `error`: `unavailable`, `misconfigured`.
    [[nodiscard]] bool try_lock_shared() { return keep(readers_->lock({.once = true}, {})); }

    /// Effects: waits until the lock is held, for `d` at most. Returns: whether it is.
    /// Throws: `error`: `unavailable` when no quorum could be asked in that time; `misconfigured` at once.
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_shared_for(std::chrono::duration<Rep, Period> const& d)
    {
        return keep(readers_->lock(detail::patience::in(d), {}));
    }

    /// As above; it also ends when `stop` is requested.
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_shared_for(std::stop_token const& stop, std::chrono::duration<Rep, Period> const& d)
    {
        return keep(readers_->lock(detail::patience::in(d), stop));
    }

    /// As `try_lock_shared_for`, until a point of any clock. That clock is read once.
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_shared_until(std::chrono::time_point<Clock, Duration> const& t)
    {
        return keep(readers_->lock(detail::patience::until(t), {}));
    }

    /// As above; it also ends when `stop` is requested.
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_shared_until(std::stop_token const& stop,
                                             std::chrono::time_point<Clock, Duration> const& t)
    {
        return keep(readers_->lock(detail::patience::until(t), stop));
    }

    /// Effects: `unlock_shared(ec)`; errors are reported to `on_error`.
    void unlock_shared() noexcept
    {
        auto const holds = readers_;  // the next holder may destroy this
        auto const one = holds->let_go();
        if (!one) return detail::report(on_error_, name(), {make_error_code(errc::not_owner), {}});
        one->unlock();
        holds->put_back(one);
    }

    /// Effects: gives back a shared hold to the store, and waits for the answer, one operation timeout at most: the
    /// last one that this thread took by `lock_shared` and its siblings, or else the oldest of any thread. No effect if
    /// there is none. The holds of `leased_shared_lock` are not among them.
    /// Postconditions: `ec` is as `mutex::unlock(ec)` sets it.
    void unlock_shared(std::error_code& ec) noexcept
    {
        ec = make_error_code(errc::not_owner);
        auto const holds = readers_;
        auto const one = holds->let_go();
        if (!one) return;
        one->unlock(ec);
        holds->put_back(one);
    }

    /// Effects, returns: as `mutex::extend`, for the shared hold that `unlock_shared` would give back.
    bool extend_shared(std::chrono::milliseconds ttl, std::error_code& ec)
    {
        if (auto const one = readers_->current()) return one->extend(ttl, ec);
        ec = make_error_code(errc::not_owner);
        return false;
    }

    /// As above. Throws: `error` with that code.
    void extend_shared(std::chrono::milliseconds ttl)
    {
        if (auto const one = readers_->current()) return one->extend(ttl);
        throw detail::error_of(name(), {make_error_code(errc::not_owner), "it is not held by this object"});
    }

    /// Returns: a handle to the shared hold that `unlock_shared` would give back; an empty one if there is none.
    [[nodiscard]] holdfast::lease lease_shared() const
    {
        auto const one = readers_->current();
        return one ? one->lease() : holdfast::lease{};
    }

    /// Effects: as `async_lock`, for a shared hold. It is of no thread: `unlock_shared` gives it back if the calling
    /// thread has none of its own, and it is the oldest.
    void async_lock_shared(std::function<void(std::error_code)> f, std::stop_token stop = {})
    {
        detail::begin_lock_of(*readers_, {}, std::move(stop), detail::with_code(std::move(f)));
    }

    /// Effects: as `async_try_lock_for`, for a shared hold.
    template <class Rep, class Period>
    void async_try_lock_shared_for(std::chrono::duration<Rep, Period> const& d,
                                   std::function<void(std::error_code, bool)> f, std::stop_token stop = {})
    {
        detail::begin_lock_of(*readers_, detail::patience::in(d), std::move(stop), detail::in_time(std::move(f)));
    }

    /// Effects: as `shared_mutex::unlock_shared(ec)`, but returns at once; `f(ec)` is called with its result.
    void async_unlock_shared(std::function<void(std::error_code)> f)
    {
        detail::begin_unlock_of(*readers_, std::move(f));
    }

    // From one to the other.

    /// Effects: turns the exclusive hold into a shared one of this thread. No writer has the lock in between. The
    /// shared hold has a lease and a fencing token of its own.
    /// Throws: `error`: `not_owner`; `lease_lost`, if the store says that the lock is not ours; `unavailable`,
    /// `misconfigured`. Then the exclusive hold is as it was.
    void unlock_and_lock_shared()
    {
        auto const held = object_->held_token();
        if (!held) throw detail::error_of(name(), {make_error_code(errc::not_owner), "it is not held exclusively"});
        auto const one = readers_->lock({.once = true, .beside = held, .undisputed = true}, {});
        if (!one) throw detail::error_of(name(), {make_error_code(errc::lease_lost), "the exclusive hold is lost"});
        object_->unlock();
        readers_->keep(one);
    }

    /// Effects: turns the shared hold that `unlock_shared` would give back into the exclusive one, if it is the only
    /// hold. It asks once and never waits: of two that try, at most one succeeds, and perhaps neither.
    /// Returns: whether the lock is held exclusively; no other writer had it in between. If not, the shared hold is as
    /// it was. `false` also while another thread of this client waits for the exclusive side.
    /// Throws: `error`: `not_owner`, `unavailable`, `misconfigured`. Then the shared hold is as it was.
    [[nodiscard]] bool try_unlock_shared_and_lock()
    {
        auto const one = readers_->let_go();
        auto const held = one ? one->held_token() : std::nullopt;
        if (!held) {
            if (one) readers_->put_back(one);
            throw detail::error_of(name(), {make_error_code(errc::not_owner), "it is not held by this object"});
        }
        bool granted = false;
        try {
            granted = object_->lock({.once = true, .beside = held}, {});
        } catch (...) {
            readers_->keep_again(one);
            throw;
        }
        if (!granted) {
            readers_->keep_again(one);
            return false;
        }
        one->unlock();
        readers_->put_back(one);
        return true;
    }

protected:
    /// As the public one, with these sides.
    shared_mutex(detail::shared_sides sides, lock_options const& options)
        : exclusive_calls{std::move(sides.exclusive)}, readers_{std::move(sides.shared)}, on_error_{options.on_error}
    {
    }

private:
    friend struct detail::async_access;
    friend class leased_shared_lock;

    [[nodiscard]] std::shared_ptr<detail::async_source> async_shared_source() const noexcept { return readers_; }

    [[nodiscard]] bool keep(detail::shared_object::object const& one) noexcept
    {
        if (one) readers_->keep(one);
        return one != nullptr;
    }

    std::shared_ptr<detail::shared_object> const readers_;  // has the shared holds
    detail::error_hook on_error_;
};

static_assert(SharedLock<shared_mutex>);

}  // namespace holdfast
