// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/lease.hpp>
#include <holdfast/core/lock.hpp>
#include <holdfast/lock/leased_lock.hpp>

#include <chrono>
#include <concepts>
#include <functional>
#include <optional>
#include <shared_mutex>
#include <type_traits>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI {

namespace detail {

/// Returns: what `f(hold)` returns, or `f()`.
template <class F>
decltype(auto) call_with(lease const& hold, F&& f)
{
    if constexpr (std::invocable<F, lease const&>)
        return std::invoke(std::forward<F>(f), hold);
    else
        return std::invoke(std::forward<F>(f));
}

/// Returns: if `held`, what `f` returned, in an `optional`, which is empty otherwise; for a `void` function, `held`.
template <class F>
[[nodiscard]] auto call_if(bool held, lease const& hold, F&& f)
{
    using returned = decltype(call_with(hold, std::forward<F>(f)));
    if constexpr (std::is_void_v<returned>) {
        if (held) call_with(hold, std::forward<F>(f));
        return held;
    } else {
        using value = std::remove_cvref_t<returned>;
        return held ? std::optional<value>{call_with(hold, std::forward<F>(f))} : std::optional<value>{};
    }
}

}  // namespace detail

/// Effects: runs `f(lease)`, or `f()`, while `m` is held; waits for the lock as long as `lock()` does.
/// Returns: what `f` returns. Throws: what `m.lock()` and `f` throw; the lock is not held then.
template <Lock M, class F>
    requires std::invocable<F, lease const&> || std::invocable<F>
decltype(auto) with_lock(M& m, F&& f)
{
    leased_lock const hold{m};
    return detail::call_with(hold.lease(), std::forward<F>(f));
}

/// Effects: the same, if the lock is taken within `d`; otherwise `f` is not run.
/// Returns: what `f` returned, in an `optional` that is empty if it was not run; for a `void` function, whether it was
/// run. Not to be discarded.
template <Lock M, class Rep, class Period, class F>
    requires std::invocable<F, lease const&> || std::invocable<F>
[[nodiscard]] auto with_lock(M& m, std::chrono::duration<Rep, Period> const& d, F&& f)
{
    leased_lock const hold{m, d};
    return detail::call_if(hold.owns_lock(), hold.lease(), std::forward<F>(f));
}

/// Effects: runs `f(lease)`, or `f()`, while this thread has a shared hold of `m`; waits for it as long as
/// `lock_shared()` does. Returns: what `f` returns. Throws: what `m.lock_shared()` and `f` throw; the hold is given
/// back then.
template <SharedLock M, class F>
    requires std::invocable<F, lease const&> || std::invocable<F>
decltype(auto) with_shared_lock(M& m, F&& f)
{
    std::shared_lock const hold{m};
    return detail::call_with(m.lease_shared(), std::forward<F>(f));
}

/// Effects: the same, if the lock is taken within `d`; otherwise `f` is not run. Returns: as `with_lock` for a time.
template <SharedLock M, class Rep, class Period, class F>
    requires std::invocable<F, lease const&> || std::invocable<F>
[[nodiscard]] auto with_shared_lock(M& m, std::chrono::duration<Rep, Period> const& d, F&& f)
{
    std::shared_lock const hold{m, d};
    return detail::call_if(hold.owns_lock(), m.lease_shared(), std::forward<F>(f));
}

}  // namespace holdfast
