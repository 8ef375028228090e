// SPDX-License-Identifier: MIT
//
// How an asynchronous call begins, for one of the two Asios. <holdfast/asio.hpp> and <holdfast/boost_asio.hpp> include
// this file, each once: so it has no #pragma once. HOLDFAST_ASIO is the namespace of the Asio, HOLDFAST_ASIO_SCOPE our
// namespace for it: everything here has a different name for each Asio.

namespace holdfast::inline HOLDFAST_ABI::detail::HOLDFAST_ASIO_SCOPE {

/// Effects: begins a call by `begin(object, stop, call)`, with the object that `find()` returns; `handler` is told the
/// result, even if one of these throws. If the handler's context is just ending, no handler is told, and `begin` gets a
/// call that tells none.
template <class Tells, class Handler, class Find, class Begin>
void begin_call(Handler&& handler, Find const& find, Begin const& begin)
{
    auto const executor = net::get_associated_executor(handler);
    auto slot = net::get_associated_cancellation_slot(handler);
    auto const among = calls_of(executor);
    pending_handler* waits = &pending<Tells, std::decay_t<Handler>>::make(std::forward<Handler>(handler), executor);
    std::error_code why;
    try {
        std::shared_ptr<async_object> const object = find();
        auto stop = waits->stop;
        auto call = std::make_unique<async_call>(among, object, *waits);
        if (!call->tells()) std::exchange(waits, nullptr)->destroy();
        // A cancelled call has no effect; otherwise it was not cancelled. This holds for all kinds of cancellation.
        if (waits && slot.is_connected()) slot.assign([stop](net::cancellation_type) mutable { stop.request_stop(); });
        return begin(object, stop.get_token(), std::move(call));
    } catch (...) {
        why = current_exception_code();
    }
    if (waits) waits->complete(why, {});
}

/// How long a call waits at most; empty: no limit.
using time_limit = std::optional<std::chrono::nanoseconds>;

template <class Tells>
struct begin_lock {
    template <class Handler>
    void operator()(Handler&& handler, std::shared_ptr<async_source> const& from, time_limit limit) const
    {
        auto const p = limit ? patience::in(*limit) : patience{};
        begin_call<Tells>(
            std::forward<Handler>(handler), [&] { return from->to_lock(); },
            [&](auto const& of, std::stop_token stop, std::unique_ptr<async_call> told) {
                if (told->tells()) of->begin_lock(p, std::move(stop), std::move(told));
            });
    }
};

struct begin_unlock {
    template <class Handler>
    void operator()(Handler&& handler, std::shared_ptr<async_source> const& from) const
    {
        holdfast::lease hold;
        begin_call<tells_error>(
            std::forward<Handler>(handler), [&] { return from->to_unlock(hold); },
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

/// Effects: begins to take a hold of `from`, within `limit`; `token` says what becomes of the result.
template <class Tells, class Token>
auto take(std::shared_ptr<async_source> from, std::remove_reference_t<Token>& token, time_limit limit = {})
{
    return net::async_initiate<Token, typename Tells::signature>(begin_lock<Tells>{}, token, std::move(from), limit);
}

/// As above, for `d` at most.
template <class Tells, class Token, class Rep, class Period>
auto take(std::shared_ptr<async_source> from, std::remove_reference_t<Token>& token,
          std::chrono::duration<Rep, Period> const& d)
{
    time_limit const limit = saturating_add(boot_clock::time_point{}, d).time_since_epoch();
    return net::async_initiate<Token, typename Tells::signature>(begin_lock<Tells>{}, token, std::move(from), limit);
}

/// Effects: the same to give a hold back: by `begin`, which is called with `from`.
template <class Token, class Begin, class From>
auto give_back(Begin begin, From from, std::remove_reference_t<Token>& token)
{
    return net::async_initiate<Token, tells_error::signature>(begin, token, std::move(from));
}

}  // namespace holdfast::detail::HOLDFAST_ASIO_SCOPE
