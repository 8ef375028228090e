// SPDX-License-Identifier: MIT
//
// Asynchronous locking for one of the two Asios. <holdfast/asio.hpp> and <holdfast/boost_asio.hpp> include this file,
// each once: so it has no #pragma once. HOLDFAST_ASIO is the namespace of the Asio, HOLDFAST_ASIO_SCOPE our namespace
// for it: everything here has a different name for each Asio.

namespace holdfast::inline HOLDFAST_ABI {
inline namespace HOLDFAST_ASIO_SCOPE {

// What the functions below are made of.
namespace asio_parts = detail::HOLDFAST_ASIO_SCOPE;

/// Effects: takes `m` asynchronously: a `mutex`, a `multi_mutex`, or a `shared_mutex` exclusively. Completes with
/// `void(error_code)`. No error: it is held. Otherwise the code that `lock()` throws, or `operation_aborted` after a
/// cancellation of any type, or if `m` was destroyed.
///
/// This and the functions below throw if there is no memory for the call, or the handler cannot be moved. Then nothing
/// was begun, and the handler is not called. A guard that was passed to `async_unlock` gives its lock back all the
/// same; how that ends is not reported. What fails after that is the result of the call.
///
/// If the result may be dropped, as by `async_lock(m, use_awaitable) || timer.async_wait(use_awaitable)`, use
/// `async_lock_guard`: a dropped guard gives the lock back.
template <detail::async_lockable M, asio_parts::error_token Token>
auto async_lock(M& m, Token&& token)
{
    return asio_parts::take<asio_parts::tells_error, Token>(detail::async_access::source(m), token);
}

/// Effects: as `async_lock`, for `d` at most. Completes with `void(error_code, bool)`: whether it is held. If the time
/// passed while others held it, there is no error.
template <detail::async_lockable M, class Rep, class Period, asio_parts::held_token Token>
auto async_try_lock_for(M& m, std::chrono::duration<Rep, Period> const& d, Token&& token)
{
    return asio_parts::take<asio_parts::tells_held, Token>(detail::async_access::source(m), token, d);
}

/// Effects: as `async_lock`. Completes with `void(error_code, async_guard)`: the guard owns the lock.
template <detail::async_lockable M, asio_parts::guard_token Token>
auto async_lock_guard(M& m, Token&& token)
{
    return asio_parts::take<asio_parts::tells_guard, Token>(detail::async_access::source(m), token);
}

/// Effects: as `async_try_lock_for`. Completes with `void(error_code, async_guard)`: the guard owns the lock, if it is
/// held.
template <detail::async_lockable M, class Rep, class Period, asio_parts::guard_token Token>
auto async_lock_guard(M& m, std::chrono::duration<Rep, Period> const& d, Token&& token)
{
    return asio_parts::take<asio_parts::tells_guard, Token>(detail::async_access::source(m), token, d);
}

/// Effects: gives `m` back asynchronously. Completes with `void(error_code)`: the code of `unlock(ec)`. A cancellation
/// has no effect.
template <detail::async_lockable M, asio_parts::error_token Token>
auto async_unlock(M& m, Token&& token)
{
    return asio_parts::give_back<Token>(asio_parts::begin_unlock{}, detail::async_access::source(m), token);
}

/// Effects: the same for the hold of `hold`, of whatever it is, which owns none afterwards. `not_owner` if it owned
/// none before.
template <asio_parts::error_token Token>
auto async_unlock(async_guard& hold, Token&& token)
{
    return asio_parts::give_back<Token>(asio_parts::begin_unlock_guard{}, std::move(hold), token);
}

/// Effects: as `async_lock`, for a shared hold of the `shared_mutex` `m`, which `unlock_shared` and
/// `async_unlock_shared` give back.
template <detail::async_shared_lockable M, asio_parts::error_token Token>
auto async_lock_shared(M& m, Token&& token)
{
    return asio_parts::take<asio_parts::tells_error, Token>(detail::async_access::shared_source(m), token);
}

/// Effects: as `async_try_lock_for`, for a shared hold.
template <detail::async_shared_lockable M, class Rep, class Period, asio_parts::held_token Token>
auto async_try_lock_shared_for(M& m, std::chrono::duration<Rep, Period> const& d, Token&& token)
{
    return asio_parts::take<asio_parts::tells_held, Token>(detail::async_access::shared_source(m), token, d);
}

/// Effects: as `async_lock_guard`, for a shared hold, which is the guard's own.
template <detail::async_shared_lockable M, asio_parts::guard_token Token>
auto async_lock_shared_guard(M& m, Token&& token)
{
    return asio_parts::take<asio_parts::tells_guard, Token>(detail::async_access::shared_source(m), token);
}

/// Effects: the same, for `d` at most.
template <detail::async_shared_lockable M, class Rep, class Period, asio_parts::guard_token Token>
auto async_lock_shared_guard(M& m, std::chrono::duration<Rep, Period> const& d, Token&& token)
{
    return asio_parts::take<asio_parts::tells_guard, Token>(detail::async_access::shared_source(m), token, d);
}

/// Effects: as `async_unlock`, for the shared hold that `unlock_shared` would give back.
template <detail::async_shared_lockable M, asio_parts::error_token Token>
auto async_unlock_shared(M& m, Token&& token)
{
    return asio_parts::give_back<Token>(asio_parts::begin_unlock{}, detail::async_access::shared_source(m), token);
}

/// Effects: takes a permit of the `semaphore` `s` asynchronously, which `release` and `async_release` give back.
/// Completes as `async_lock`.
template <detail::async_acquirable S, asio_parts::error_token Token>
auto async_acquire(S& s, Token&& token)
{
    return asio_parts::take<asio_parts::tells_error, Token>(detail::async_access::permit_source(s), token);
}

/// Effects: the same for `n` permits: all, or none; as `semaphore::acquire(n)`. An `n` that is not 1 to `max()`
/// completes with `misconfigured`.
template <detail::async_acquirable S, asio_parts::error_token Token>
auto async_acquire(S& s, std::ptrdiff_t n, Token&& token)
{
    return asio_parts::take<asio_parts::tells_error, Token>(detail::async_access::permit_source(s, n), token);
}

/// Effects: as `async_acquire`, for `d` at most. Completes as `async_try_lock_for`.
template <detail::async_acquirable S, class Rep, class Period, asio_parts::held_token Token>
auto async_try_acquire_for(S& s, std::chrono::duration<Rep, Period> const& d, Token&& token)
{
    return asio_parts::take<asio_parts::tells_held, Token>(detail::async_access::permit_source(s), token, d);
}

/// Effects: the same for `n` permits: all, or none; `d` is for all of them together.
template <detail::async_acquirable S, class Rep, class Period, asio_parts::held_token Token>
auto async_try_acquire_for(S& s, std::ptrdiff_t n, std::chrono::duration<Rep, Period> const& d, Token&& token)
{
    return asio_parts::take<asio_parts::tells_held, Token>(detail::async_access::permit_source(s, n), token, d);
}

/// Effects: as `async_acquire`. Completes with `void(error_code, async_guard)`: the guard owns the permit.
template <detail::async_acquirable S, asio_parts::guard_token Token>
auto async_acquire_guard(S& s, Token&& token)
{
    return asio_parts::take<asio_parts::tells_guard, Token>(detail::async_access::permit_source(s), token);
}

/// Effects: the same, for `d` at most.
template <detail::async_acquirable S, class Rep, class Period, asio_parts::guard_token Token>
auto async_acquire_guard(S& s, std::chrono::duration<Rep, Period> const& d, Token&& token)
{
    return asio_parts::take<asio_parts::tells_guard, Token>(detail::async_access::permit_source(s), token, d);
}

/// Effects: the same for `n` permits: all, or none. The guard's hold lasts as long as each of them; if `n` is greater
/// than 1, its fencing token is 0.
template <detail::async_acquirable S, asio_parts::guard_token Token>
auto async_acquire_guard(S& s, std::ptrdiff_t n, Token&& token)
{
    return asio_parts::take<asio_parts::tells_guard, Token>(detail::async_access::permit_source(s, n), token);
}

/// Effects: the same, for `d` at most.
template <detail::async_acquirable S, class Rep, class Period, asio_parts::guard_token Token>
auto async_acquire_guard(S& s, std::ptrdiff_t n, std::chrono::duration<Rep, Period> const& d, Token&& token)
{
    return asio_parts::take<asio_parts::tells_guard, Token>(detail::async_access::permit_source(s, n), token, d);
}

/// Effects: gives back the permit that `release()` would, asynchronously. Completes with `void(error_code)`: the code
/// of `release(ec)`. A cancellation has no effect.
template <detail::async_acquirable S, asio_parts::error_token Token>
auto async_release(S& s, Token&& token)
{
    return asio_parts::give_back<Token>(asio_parts::begin_unlock{}, detail::async_access::permit_source(s), token);
}

/// Effects: the same for `n` permits, as `release(n, ec)`.
template <detail::async_acquirable S, asio_parts::error_token Token>
auto async_release(S& s, std::ptrdiff_t n, Token&& token)
{
    return asio_parts::give_back<Token>(asio_parts::begin_unlock{}, detail::async_access::permit_source(s, n), token);
}

}  // namespace HOLDFAST_ASIO_SCOPE
}  // namespace holdfast
