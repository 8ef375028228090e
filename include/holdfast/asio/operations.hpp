// SPDX-License-Identifier: MIT
//
// Asynchronous locking for one of the two Asios. <holdfast/asio.hpp> and <holdfast/boost_asio.hpp> include this file,
// each once: so it has no #pragma once. HOLDFAST_ASIO is the namespace of the Asio, HOLDFAST_ASIO_SCOPE our namespace
// for it: everything here has a different name for each Asio.

namespace holdfast::inline HOLDFAST_ABI::detail::HOLDFAST_ASIO_SCOPE {

/// Effects: begins a call by `begin(object, stop, call)`, with the object that `find()` returns; `handler` is told the
/// result, even if one of these throws.
template <class Tells, class Handler, class Find, class Begin>
void begin_call(Handler&& handler, Find const& find, Begin const& begin)
{
    auto const executor = net::get_associated_executor(handler);
    auto slot = net::get_associated_cancellation_slot(handler);
    auto const among = calls_of(executor);
    auto& waits = pending<Tells, std::decay_t<Handler>>::make(std::forward<Handler>(handler), executor);
    std::error_code why;
    try {
        std::shared_ptr<async_object> const object = find();
        auto const stop = waits.stop;
        auto call = std::make_unique<async_call>(among, object, waits);
        if (!call->tells()) return waits.destroy();
        // A cancelled call has no effect; otherwise it was not cancelled. This holds for all kinds of cancellation.
        if (slot.is_connected()) slot.assign([stop](net::cancellation_type) mutable { stop.request_stop(); });
        return begin(object, stop.get_token(), std::move(call));
    } catch (...) {
        why = current_exception_code();
    }
    waits.complete(why, {});
}

/// The object of a mutex stands for each of its calls; what may have several holds makes one for each.
using object_of_mutex = std::shared_ptr<async_object>;
using source = std::shared_ptr<async_source>;

[[nodiscard]] inline object_of_mutex to_lock(object_of_mutex const& one) { return one; }
[[nodiscard]] inline object_of_mutex to_lock(source const& of) { return of->to_lock(); }

[[nodiscard]] inline object_of_mutex to_unlock(object_of_mutex const& one, holdfast::lease& hold)
{
    hold = one->lease();
    return one;
}
[[nodiscard]] inline object_of_mutex to_unlock(source const& of, holdfast::lease& hold) { return of->to_unlock(hold); }

/// How long a call waits.
using time_limit = std::optional<std::chrono::nanoseconds>;

inline constexpr time_limit forever;

template <class Rep, class Period>
[[nodiscard]] time_limit limited(std::chrono::duration<Rep, Period> const& d) noexcept
{
    return saturating_add(boot_clock::time_point{}, d).time_since_epoch();
}

template <class Tells>
struct begin_lock {
    template <class Handler, class From>
    void operator()(Handler&& handler, From const& from, time_limit limit) const
    {
        patience p;
        if (limit) p.deadline = saturating_add(boot_clock::now(), *limit);
        begin_call<Tells>(
            std::forward<Handler>(handler), [&] { return to_lock(from); },
            [&](auto const& of, std::stop_token stop, std::unique_ptr<async_call> told) {
                of->begin_lock(p, std::move(stop), std::move(told));
            });
    }
};

struct begin_unlock {
    template <class Handler, class From>
    void operator()(Handler&& handler, From const& from) const
    {
        holdfast::lease hold;
        begin_call<tells_error>(
            std::forward<Handler>(handler), [&] { return to_unlock(from, hold); },
            [&](auto const& of, auto const&, std::unique_ptr<async_call> told) {
                of->begin_unlock(hold, std::move(told));
            });
    }
};

struct begin_unlock_guard {
    template <class Handler>
    void operator()(Handler&& handler, async_guard hold) const
    {
        begin_call<tells_error>(
            std::forward<Handler>(handler), [&] { return async_access::of(hold); },
            [&](auto const& of, auto const&, std::unique_ptr<async_call> told) {
                if (!of) throw error{errc::not_owner, "the guard owns no lock"};
                of->begin_unlock(hold.lease(), std::move(told));
                async_access::forget(hold);
            });
    }
};

template <class Token>
concept error_token = token_for<Token, tells_error::signature>;

template <class Token>
concept held_token = token_for<Token, tells_held::signature>;

template <class Token>
concept guard_token = token_for<Token, tells_guard::signature>;

template <class Tells, class Token, class Begin, class... Args>
auto initiate(Begin begin, std::remove_reference_t<Token>& token, Args&&... args)
{
    return net::async_initiate<Token, typename Tells::signature>(std::move(begin), token, std::forward<Args>(args)...);
}

}  // namespace holdfast::detail::HOLDFAST_ASIO_SCOPE

namespace holdfast::inline HOLDFAST_ABI {
inline namespace HOLDFAST_ASIO_SCOPE {

/// Effects: takes `m` asynchronously: a `mutex`, a `multi_mutex`, or a `shared_mutex` exclusively. Completes with
/// `void(error_code)`. No error: it is held. Otherwise the code that `lock()` throws, or `operation_aborted` after a
/// cancellation of any type, or if `m` was destroyed.
///
/// If the result may be dropped, as by `async_lock(m, use_awaitable) || timer.async_wait(use_awaitable)`, use
/// `async_lock_guard`: a dropped guard gives the lock back.
template <detail::async_lockable M, detail::HOLDFAST_ASIO_SCOPE::error_token Token>
auto async_lock(M& m, Token&& token)
{
    using namespace detail::HOLDFAST_ASIO_SCOPE;
    return initiate<tells_error, Token>(begin_lock<tells_error>{}, token, detail::async_access::source(m), forever);
}

/// Effects: as `async_lock`, for `d` at most. Completes with `void(error_code, bool)`: whether it is held. If the time
/// passed while others held it, there is no error.
template <detail::async_lockable M, class Rep, class Period, detail::HOLDFAST_ASIO_SCOPE::held_token Token>
auto async_try_lock_for(M& m, std::chrono::duration<Rep, Period> const& d, Token&& token)
{
    using namespace detail::HOLDFAST_ASIO_SCOPE;
    return initiate<tells_held, Token>(begin_lock<tells_held>{}, token, detail::async_access::source(m), limited(d));
}

/// Effects: as `async_lock`. Completes with `void(error_code, async_guard)`: the guard owns the lock.
template <detail::async_lockable M, detail::HOLDFAST_ASIO_SCOPE::guard_token Token>
auto async_lock_guard(M& m, Token&& token)
{
    using namespace detail::HOLDFAST_ASIO_SCOPE;
    return initiate<tells_guard, Token>(begin_lock<tells_guard>{}, token, detail::async_access::source(m), forever);
}

/// Effects: as `async_try_lock_for`. Completes with `void(error_code, async_guard)`: the guard owns the lock, if it is
/// held.
template <detail::async_lockable M, class Rep, class Period, detail::HOLDFAST_ASIO_SCOPE::guard_token Token>
auto async_lock_guard(M& m, std::chrono::duration<Rep, Period> const& d, Token&& token)
{
    using namespace detail::HOLDFAST_ASIO_SCOPE;
    return initiate<tells_guard, Token>(begin_lock<tells_guard>{}, token, detail::async_access::source(m), limited(d));
}

/// Effects: gives `m` back asynchronously. Completes with `void(error_code)`: the code of `unlock(ec)`. A cancellation
/// has no effect.
template <detail::async_lockable M, detail::HOLDFAST_ASIO_SCOPE::error_token Token>
auto async_unlock(M& m, Token&& token)
{
    using namespace detail::HOLDFAST_ASIO_SCOPE;
    return initiate<tells_error, Token>(begin_unlock{}, token, detail::async_access::source(m));
}

/// Effects: the same for the hold of `hold`, of whatever it is, which owns none afterwards. `not_owner` if it owned
/// none before.
template <detail::HOLDFAST_ASIO_SCOPE::error_token Token>
auto async_unlock(async_guard& hold, Token&& token)
{
    using namespace detail::HOLDFAST_ASIO_SCOPE;
    return initiate<tells_error, Token>(begin_unlock_guard{}, token, std::move(hold));
}

/// Effects: as `async_lock`, for a shared hold of the `shared_mutex` `m`, which `unlock_shared` and
/// `async_unlock_shared` give back.
template <detail::async_shared_lockable M, detail::HOLDFAST_ASIO_SCOPE::error_token Token>
auto async_lock_shared(M& m, Token&& token)
{
    using namespace detail::HOLDFAST_ASIO_SCOPE;
    return initiate<tells_error, Token>(begin_lock<tells_error>{}, token, detail::async_access::shared_source(m),
                                        forever);
}

/// Effects: as `async_try_lock_for`, for a shared hold.
template <detail::async_shared_lockable M, class Rep, class Period, detail::HOLDFAST_ASIO_SCOPE::held_token Token>
auto async_try_lock_shared_for(M& m, std::chrono::duration<Rep, Period> const& d, Token&& token)
{
    using namespace detail::HOLDFAST_ASIO_SCOPE;
    return initiate<tells_held, Token>(begin_lock<tells_held>{}, token, detail::async_access::shared_source(m),
                                       limited(d));
}

/// Effects: as `async_lock_guard`, for a shared hold, which is the guard's own.
template <detail::async_shared_lockable M, detail::HOLDFAST_ASIO_SCOPE::guard_token Token>
auto async_lock_shared_guard(M& m, Token&& token)
{
    using namespace detail::HOLDFAST_ASIO_SCOPE;
    return initiate<tells_guard, Token>(begin_lock<tells_guard>{}, token, detail::async_access::shared_source(m),
                                        forever);
}

/// Effects: the same, for `d` at most.
template <detail::async_shared_lockable M, class Rep, class Period, detail::HOLDFAST_ASIO_SCOPE::guard_token Token>
auto async_lock_shared_guard(M& m, std::chrono::duration<Rep, Period> const& d, Token&& token)
{
    using namespace detail::HOLDFAST_ASIO_SCOPE;
    return initiate<tells_guard, Token>(begin_lock<tells_guard>{}, token, detail::async_access::shared_source(m),
                                        limited(d));
}

/// Effects: as `async_unlock`, for the shared hold that `unlock_shared` would give back.
template <detail::async_shared_lockable M, detail::HOLDFAST_ASIO_SCOPE::error_token Token>
auto async_unlock_shared(M& m, Token&& token)
{
    using namespace detail::HOLDFAST_ASIO_SCOPE;
    return initiate<tells_error, Token>(begin_unlock{}, token, detail::async_access::shared_source(m));
}

/// Effects: takes a permit of the `semaphore` `s` asynchronously, which `release` and `async_release` give back.
/// Completes as `async_lock`.
template <detail::async_acquirable S, detail::HOLDFAST_ASIO_SCOPE::error_token Token>
auto async_acquire(S& s, Token&& token)
{
    using namespace detail::HOLDFAST_ASIO_SCOPE;
    return initiate<tells_error, Token>(begin_lock<tells_error>{}, token, detail::async_access::permit_source(s),
                                        forever);
}

/// Effects: the same, for `d` at most. Completes as `async_try_lock_for`.
template <detail::async_acquirable S, class Rep, class Period, detail::HOLDFAST_ASIO_SCOPE::held_token Token>
auto async_try_acquire_for(S& s, std::chrono::duration<Rep, Period> const& d, Token&& token)
{
    using namespace detail::HOLDFAST_ASIO_SCOPE;
    return initiate<tells_held, Token>(begin_lock<tells_held>{}, token, detail::async_access::permit_source(s),
                                       limited(d));
}

/// Effects: as `async_acquire`. Completes with `void(error_code, async_guard)`: the guard owns the permit.
template <detail::async_acquirable S, detail::HOLDFAST_ASIO_SCOPE::guard_token Token>
auto async_acquire_guard(S& s, Token&& token)
{
    using namespace detail::HOLDFAST_ASIO_SCOPE;
    return initiate<tells_guard, Token>(begin_lock<tells_guard>{}, token, detail::async_access::permit_source(s),
                                        forever);
}

/// Effects: the same, for `d` at most.
template <detail::async_acquirable S, class Rep, class Period, detail::HOLDFAST_ASIO_SCOPE::guard_token Token>
auto async_acquire_guard(S& s, std::chrono::duration<Rep, Period> const& d, Token&& token)
{
    using namespace detail::HOLDFAST_ASIO_SCOPE;
    return initiate<tells_guard, Token>(begin_lock<tells_guard>{}, token, detail::async_access::permit_source(s),
                                        limited(d));
}

/// Effects: gives back the permit that `release()` would, asynchronously. Completes with `void(error_code)`: the code
/// of `release(ec)`. A cancellation has no effect.
template <detail::async_acquirable S, detail::HOLDFAST_ASIO_SCOPE::error_token Token>
auto async_release(S& s, Token&& token)
{
    using namespace detail::HOLDFAST_ASIO_SCOPE;
    return initiate<tells_error, Token>(begin_unlock{}, token, detail::async_access::permit_source(s));
}

}  // namespace HOLDFAST_ASIO_SCOPE
}  // namespace holdfast
