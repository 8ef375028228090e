// SPDX-License-Identifier: MIT
//
// For files that only lock: store, mutex, guards, options, errors. It names no server; the file that makes a client
// also includes the header of its store.
#pragma once

#include <holdfast/core/language.hpp>

#include <holdfast/core/abi.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/lease.hpp>
#include <holdfast/core/lock.hpp>
#include <holdfast/core/lock_holder.hpp>
#include <holdfast/core/options.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/lock/exclusive_calls.hpp>
#include <holdfast/lock/leased_lock.hpp>
#include <holdfast/lock/with_lock.hpp>

#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI {

namespace detail {

struct once_access;

}  // namespace detail

/// A lock of the name `name()` in a store. Meets `Lock` (whose clauses say what its members do) and the standard's
/// *Cpp17TimedLockable*. Any number of objects, in any number of processes, may have the same name; those of one client
/// share one queue. The object may outlive its store. The destructor unlocks.
///
/// `std::lock` and `std::scoped_lock` over several locks wait for one and try the others; if one is not free they give
/// all back. A thread that does so rests for a random time, 5 ms at most, before it waits again: otherwise two
/// processes with different orders keep in step. Two objects of one name are one lock, and cannot be taken together:
/// such a call does not return; `on_error` is called once (`misconfigured`) if they are of one client.
class mutex : public exclusive_calls {
public:
    /// Effects: prepares a lock; no I/O.
    /// Throws: `error` (`misconfigured`) if the name or an option cannot be used; it says which and why.
    mutex(store const& in, std::string_view name, lock_options options = {})
        : exclusive_calls{in.locks_->make_mutex(name, std::move(options))}
    {
    }

    /// Returns: as `store::holder`, of this lock, in this process or elsewhere. Throws: as that does.
    [[nodiscard]] std::optional<lock_holder> holder() const { return object_->inspect().holder; }
    /// As above.
    [[nodiscard]] std::optional<lock_holder> holder(std::error_code& ec) const noexcept
    {
        return detail::without_throwing(ec, [&] { return holder(); });
    }

    /// Effects, returns: as `store::force_unlock`, of this lock. Throws: as that does.
    bool force_unlock() { return object_->force_release(); }
    /// As above.
    bool force_unlock(std::error_code& ec) noexcept
    {
        return detail::without_throwing(ec, [&] { return force_unlock(); });
    }

    /// Effects, returns: as `store::request_release`, of this lock. Throws: as that does.
    bool request_release() { return object_->request_release(); }
    /// As above.
    bool request_release(std::error_code& ec) noexcept
    {
        return detail::without_throwing(ec, [&] { return request_release(); });
    }

protected:
    /// Effects: makes a mutex of a lock object, for a store whose locks have options of their own.
    explicit mutex(std::shared_ptr<detail::lock_object> object) noexcept : exclusive_calls{std::move(object)} {}

private:
    friend struct detail::once_access;
    friend class election_observer;
    friend class multi_mutex;
};

static_assert(Lock<mutex>);

}  // namespace holdfast
