// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/lease.hpp>
#include <holdfast/core/lock.hpp>
#include <holdfast/lock/leased_lock.hpp>

#include <chrono>
#include <concepts>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

namespace holdfast {

/// Effects: runs `f(lease)`, or `f()`, while `m` is held; waits for the lock as long as `lock()` does.
/// Returns: what `f` returns. Throws: what `m.lock()` and `f` throw; the lock is not held then.
template <Lock M, class F>
    requires std::invocable<F, lease const&> || std::invocable<F>
decltype(auto) with_lock(M& m, F&& f)
{
    leased_lock const hold{m};
    if constexpr (std::invocable<F, lease const&>)
        return std::invoke(std::forward<F>(f), hold.lease());
    else
        return std::invoke(std::forward<F>(f));
}

/// Effects: the same, where the lock is taken within `d`; otherwise `f` is not run.
/// Returns: what `f` returned, in an `optional` that is empty where it was not run; for a `void` function whether it was run. Not to be
/// discarded.
template <Lock M, class Rep, class Period, class F>
    requires std::invocable<F, lease const&> || std::invocable<F>
[[nodiscard]] auto with_lock(M& m, std::chrono::duration<Rep, Period> const& d, F&& f)
{
    leased_lock const hold{m, d};
    auto const call = [&]() -> decltype(auto) {
        if constexpr (std::invocable<F, lease const&>)
            return std::invoke(std::forward<F>(f), hold.lease());
        else
            return std::invoke(std::forward<F>(f));
    };
    if constexpr (std::is_void_v<decltype(call())>) {
        if (hold) call();
        return hold.owns_lock();
    } else {
        using value = std::remove_cvref_t<decltype(call())>;
        return hold ? std::optional<value>{call()} : std::optional<value>{};
    }
}

}  // namespace holdfast
