// SPDX-License-Identifier: MIT
//
// A lock that is granted in the order of arrival: `fair_mutex`. It names no server; the file that makes a client also
// includes the header of its store.
#pragma once

#include <holdfast/core/language.hpp>

#include <holdfast/core/abi.hpp>
#include <holdfast/core/options.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/mutex.hpp>

#include <string_view>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI {

namespace detail {

[[nodiscard]] inline lock_options in_order(lock_options options)
{
    options.fair = true;
    return options;
}

}  // namespace detail

/// A `mutex` with `lock_options::fair`: first come, first served over all processes whose locks of that name are fair.
/// On Redis the release calls the first waiter, and the lock is kept for it for 50 ms, or four of its round trips. A
/// waiter whose process has died delays no other. One that is called and stands still delays the next one until that
/// looks by itself, see `backoff_options::most`; then it has its old place. On ZooKeeper a waiter keeps its place, dead
/// or not, until its session ends. Not for locks that `std::lock` or `std::scoped_lock` take together: use
/// `multi_mutex`.
class fair_mutex : public mutex {
public:
    /// Effects: prepares a lock; no I/O.
    /// Throws: `error` (`misconfigured`) if the name or an option cannot be used, or the store keeps no order: a
    /// Redlock, whose masters each have one.
    fair_mutex(store const& in, std::string_view name, lock_options options = {})
        : mutex{in, name, detail::in_order(std::move(options))}
    {
    }
};

}  // namespace holdfast
