// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/async_object.hpp>
#include <holdfast/core/lease.hpp>
#include <holdfast/core/options.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/mutex.hpp>

#include <chrono>
#include <concepts>
#include <mutex>
#include <string_view>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI {

namespace detail {

struct once_access {
    /// Effects: asks once, and waits for the answers of all masters, so that one that hangs costs a `node_timeout`. The
    /// first attempt of a client has the time for its connections. If hosts that ask in the same moment split the votes
    /// of a fleet, asks again, for a second at most.
    /// Returns: whether `m` is held; if not, another client has it.
    [[nodiscard]] static bool try_lock(mutex& m)
    {
        auto attempt = patience::in(std::chrono::seconds{1});
        attempt.once = attempt.until_decided = attempt.told_later = true;
        return m.object_->lock(attempt, {});
    }

    /// Effects: from now on the `min_hold` is for the hold of `m`.
    static void count(mutex& m) noexcept { m.object_->begin_use(); }
};

}  // namespace detail

/// Effects: calls `f`, as `f(lease)` if it takes one, unless another call for `name` in this store, in any process,
/// runs now, or has returned and begun less than its `period` ago: all calls should say the same. If `f` throws, the
/// next call may run at once. `options` are those of the lock `name`; their `min_hold` is not used.
///
/// A job that takes longer than `period` may be begun again when it has returned. If its lease is lost, it may be begun
/// again while it runs: it should look at `lost_token()`, and send its `fencing_token()` with what it writes. If the
/// process ends while `f` runs, the next call may run when the lease has ended.
///
/// Returns: whether it called `f`.
/// Throws: what `f` throws; `error`: `unavailable`, also if it was not decided for a second who has the job: the votes
/// of a Redlock stayed split, by calls in the same moment, or a holder without a majority of the masters that answer;
/// or another thread of this client waited for an answer about it; `misconfigured`, also if the store cannot lease for
/// `period`.
///
/// Source: the `lockAtLeastFor` of ShedLock.
template <class F>
bool run_once(store const& in, std::string_view name, std::chrono::milliseconds period, F&& f,
              lock_options options = {})
{
    options.min_hold = period;  // mutant: a job whose period is not kept
    mutex m{in, name, std::move(options)};
    if (!detail::once_access::try_lock(m)) return false;
    std::unique_lock hold{m, std::adopt_lock};
    if constexpr (std::invocable<F, lease const&>)
        static_cast<void>(std::forward<F>(f)(m.lease()));
    else
        static_cast<void>(std::forward<F>(f)());
    detail::once_access::count(m);  // mutant: a job that has run not counted
    return true;
}

}  // namespace holdfast
