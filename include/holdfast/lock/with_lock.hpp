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
#include <type_traits>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI {

namespace detail {

/// Returns: what `f(lease)` returns, or `f()`.
template <class M, class F>
decltype(auto) call_while(leased_lock<M> const& hold, F&& f)
{
    if constexpr (std::invocable<F, lease const&>)
        return std::invoke(std::forward<F>(f), hold.lease());
    else
        return std::invoke(std::forward<F>(f));
}

}  // namespace detail

/// Effects: runs `f(lease)`, or `f()`, while `m` is held; waits for the lock as long as `lock()` does.
/// Returns: what `f` returns. Throws: what `m.lock()` and `f` throw; the lock is not held then.
template <Lock M, class F>
    requires std::invocable<F, lease const&> || std::invocable<F>
decltype(auto) with_lock(M& m, F&& f)
{
    leased_lock const hold{m};
    return detail::call_while(hold, std::forward<F>(f));
}

/// Effects: the same, if the lock is taken within `d`; otherwise `f` is not run.
/// Returns: what `f` returned, in an `optional` that is empty if it was not run; for a `void` function, whether it was
/// run. Not to be discarded.
template <Lock M, class Rep, class Period, class F>
    requires std::invocable<F, lease const&> || std::invocable<F>
[[nodiscard]] auto with_lock(M& m, std::chrono::duration<Rep, Period> const& d, F&& f)
{
    leased_lock const hold{m, d};
    using returned = decltype(detail::call_while(hold, std::forward<F>(f)));
    if constexpr (std::is_void_v<returned>) {
        if (hold) detail::call_while(hold, std::forward<F>(f));
        return hold.owns_lock();
    } else {
        using value = std::remove_cvref_t<returned>;
        return hold ? std::optional<value>{detail::call_while(hold, std::forward<F>(f))} : std::optional<value>{};
    }
}

}  // namespace holdfast
