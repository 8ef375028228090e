// SPDX-License-Identifier: MIT
//
// Asynchronous locking for one of the two Asios. <holdfast/asio.hpp> and <holdfast/boost_asio.hpp> include this file,
// each once: so it has no #pragma once. HOLDFAST_ASIO is the namespace of the Asio, HOLDFAST_ASIO_SCOPE our namespace
// for it: everything here has a different name for each Asio.

namespace holdfast::inline HOLDFAST_ABI::detail::HOLDFAST_ASIO_SCOPE {

/// Effects: begins a call by `begin(object, stop, call)`; `handler` is told the result, even if that throws.
template <class Tells, class Handler, class Begin>
void begin_call(Handler&& handler, std::shared_ptr<lock_object> const& object, Begin const& begin)
{
    auto const executor = net::get_associated_executor(handler);
    auto slot = net::get_associated_cancellation_slot(handler);
    auto const among = calls_of(executor);
    auto& waits = pending<Tells, std::decay_t<Handler>>::make(std::forward<Handler>(handler), executor);
    std::error_code why;
    try {
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
    template <class Handler>
    void operator()(Handler&& handler, std::shared_ptr<lock_object> const& object, time_limit limit) const
    {
        patience p;
        if (limit) p.deadline = saturating_add(boot_clock::now(), *limit);
        begin_call<Tells>(std::forward<Handler>(handler), object,
                          [&](auto const& of, std::stop_token stop, std::unique_ptr<async_call> told) {
                              of->begin_lock(p, std::move(stop), std::move(told));
                          });
    }
};

struct begin_unlock {
    template <class Handler>
    void operator()(Handler&& handler, std::shared_ptr<lock_object> const& object) const
    {
        begin_call<tells_error>(std::forward<Handler>(handler), object,
                                [](auto const& of, auto const&, std::unique_ptr<async_call> told) {
                                    of->begin_unlock(of->lease(), std::move(told));
                                });
    }

    template <class Handler>
    void operator()(Handler&& handler, async_guard hold) const
    {
        begin_call<tells_error>(std::forward<Handler>(handler), async_access::of(hold),
                                [&](auto const& of, auto const&, std::unique_ptr<async_call> told) {
                                    if (!of) throw error{errc::not_owner, "the guard owns no lock"};
                                    of->begin_unlock(hold.lease(), std::move(told));
                                    hold.release();
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

/// Effects: takes `m` asynchronously. Completes with `void(error_code)`. No error: it is held. Otherwise the code that
/// `lock()` throws, or `operation_aborted` after a cancellation of any type, or if `m` was destroyed.
///
/// If the result may be dropped, as by `async_lock(m, use_awaitable) || timer.async_wait(use_awaitable)`, use
/// `async_lock_guard`: a dropped guard gives the lock back.
template <detail::HOLDFAST_ASIO_SCOPE::error_token Token>
auto async_lock(mutex& m, Token&& token)
{
    using namespace detail::HOLDFAST_ASIO_SCOPE;
    return initiate<tells_error, Token>(begin_lock<tells_error>{}, token, detail::async_access::of(m), forever);
}

/// Effects: the same, waiting for `d` at most. Completes with `void(error_code, bool)`: whether it is held. No error
/// and `false`: the time passed while others held it.
template <class Rep, class Period, detail::HOLDFAST_ASIO_SCOPE::held_token Token>
auto async_try_lock_for(mutex& m, std::chrono::duration<Rep, Period> const& d, Token&& token)
{
    using namespace detail::HOLDFAST_ASIO_SCOPE;
    return initiate<tells_held, Token>(begin_lock<tells_held>{}, token, detail::async_access::of(m), limited(d));
}

/// Effects: as `async_lock`. Completes with `void(error_code, async_guard)`: the guard owns the lock.
template <detail::HOLDFAST_ASIO_SCOPE::guard_token Token>
auto async_lock_guard(mutex& m, Token&& token)
{
    using namespace detail::HOLDFAST_ASIO_SCOPE;
    return initiate<tells_guard, Token>(begin_lock<tells_guard>{}, token, detail::async_access::of(m), forever);
}

/// Effects: as `async_try_lock_for`. Completes with `void(error_code, async_guard)`: the guard owns the lock, if it is
/// held.
template <class Rep, class Period, detail::HOLDFAST_ASIO_SCOPE::guard_token Token>
auto async_lock_guard(mutex& m, std::chrono::duration<Rep, Period> const& d, Token&& token)
{
    using namespace detail::HOLDFAST_ASIO_SCOPE;
    return initiate<tells_guard, Token>(begin_lock<tells_guard>{}, token, detail::async_access::of(m), limited(d));
}

/// Effects: gives `m` back asynchronously. Completes with `void(error_code)`: the code of `unlock(ec)`. A cancellation
/// has no effect.
template <detail::HOLDFAST_ASIO_SCOPE::error_token Token>
auto async_unlock(mutex& m, Token&& token)
{
    using namespace detail::HOLDFAST_ASIO_SCOPE;
    return initiate<tells_error, Token>(begin_unlock{}, token, detail::async_access::of(m));
}

/// Effects: the same for the lock of `hold`, which owns none afterwards. `not_owner` if it owned none before.
template <detail::HOLDFAST_ASIO_SCOPE::error_token Token>
auto async_unlock(async_guard& hold, Token&& token)
{
    using namespace detail::HOLDFAST_ASIO_SCOPE;
    return initiate<tells_error, Token>(begin_unlock{}, token, std::move(hold));
}

}  // namespace HOLDFAST_ASIO_SCOPE
}  // namespace holdfast
