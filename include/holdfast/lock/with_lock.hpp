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
template <class Hold, class F>
decltype(auto) call_while(Hold const& hold, F&& f)
{
    if constexpr (std::invocable<F, lease const&>)
        return std::invoke(std::forward<F>(f), hold.lease());
    else
        return std::invoke(std::forward<F>(f));
}

/// A shared hold of a `SharedLock` for a scope.
template <SharedLock M>
class shared_section {
public:
    explicit shared_section(M& m) : mutex_{&m}
    {
        m.lock_shared();
        lease_ = m.lease_shared();
    }
    template <class Rep, class Period>
    shared_section(M& m, std::chrono::duration<Rep, Period> const& d)
    {
        if (!m.try_lock_shared_for(d)) return;
        mutex_ = &m;
        lease_ = m.lease_shared();
    }
    shared_section(shared_section const&) = delete;
    shared_section& operator=(shared_section const&) = delete;
    ~shared_section()
    {
        if (mutex_) mutex_->unlock_shared();
    }

    [[nodiscard]] bool owns_lock() const noexcept { return mutex_ != nullptr; }
    [[nodiscard]] holdfast::lease const& lease() const noexcept { return lease_; }

private:
    M* mutex_ = nullptr;
    holdfast::lease lease_;
};

/// Returns: what `f` returned while `hold` was owned, in an `optional` that is empty if it is not; for a `void`
/// function, whether it is.
template <class Hold, class F>
[[nodiscard]] auto call_if(Hold const& hold, F&& f)
{
    using returned = decltype(call_while(hold, std::forward<F>(f)));
    if constexpr (std::is_void_v<returned>) {
        if (hold.owns_lock()) call_while(hold, std::forward<F>(f));
        return hold.owns_lock();
    } else {
        using value = std::remove_cvref_t<returned>;
        return hold.owns_lock() ? std::optional<value>{call_while(hold, std::forward<F>(f))} : std::optional<value>{};
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
    return detail::call_if(hold, std::forward<F>(f));
}

/// Effects: runs `f(lease)`, or `f()`, while this thread has a shared hold of `m`; waits for it as long as
/// `lock_shared()` does. Returns: what `f` returns. Throws: what `m.lock_shared()` and `f` throw; the hold is given
/// back then.
template <SharedLock M, class F>
    requires std::invocable<F, lease const&> || std::invocable<F>
decltype(auto) with_shared_lock(M& m, F&& f)
{
    detail::shared_section const hold{m};
    return detail::call_while(hold, std::forward<F>(f));
}

/// Effects: the same, if the lock is taken within `d`; otherwise `f` is not run. Returns: as `with_lock` for a time.
template <SharedLock M, class Rep, class Period, class F>
    requires std::invocable<F, lease const&> || std::invocable<F>
[[nodiscard]] auto with_shared_lock(M& m, std::chrono::duration<Rep, Period> const& d, F&& f)
{
    detail::shared_section const hold{m, d};
    return detail::call_if(hold, std::forward<F>(f));
}

}  // namespace holdfast
