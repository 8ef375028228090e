// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/announcer.hpp>
#include <holdfast/core/async_object.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/hold_state.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/core/options.hpp>
#include <holdfast/lock/report.hpp>

#include <memory>
#include <new>
#include <stop_token>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// Effects: stops `source`, if it has a state: in a thread of `background`, or in this one if that is null or memory is
/// short.
inline void stop_tokens(announcer* background, announcer::kind what, std::stop_source const& source) noexcept
{
    if (!source.stop_possible()) return;
    try {
        if (background) return background->make(what, [of = source]() mutable { of.request_stop(); });
    } catch (std::bad_alloc const&) {  // NOLINT(bugprone-empty-catch): then here
    }
    std::stop_source{source}.request_stop();
}

/// Effects: `lost` is lost, and with it the hold of several locks that it is a part of; stops their tokens, as above.
inline void announce_loss(announcer* background, hold_state& lost) noexcept
{
    stop_tokens(background, announcer::kind::stop, lost.mark_lost());
    auto const joint = lost.joint();  // one that it joins after this finds it lost
    if (joint) stop_tokens(background, announcer::kind::stop, joint->mark_lost());
    stop_tokens(background, announcer::kind::tell, lost.warning());
    if (joint) stop_tokens(background, announcer::kind::tell, joint->warning());
}

/// Effects: the holder of `hold`, and of the hold of several locks that it is a part of, is asked to release it; stops
/// their tokens, as above. Returns: whether that is new.
[[nodiscard]] inline bool announce_request(announcer* background, hold_state& hold) noexcept
{
    auto const ask = [background](hold_state& one) {
        std::stop_source tokens{std::nostopstate};
        bool const asked = one.request_release(tokens);
        if (asked) stop_tokens(background, announcer::kind::tell, tokens);
        return asked;
    };
    if (!ask(hold)) return false;
    if (auto const joint = hold.joint()) ask(*joint);
    return true;
}

/// Effects: delivers a result to `told`. If that runs user code, a thread of `background` does this, or this one if
/// that is null or memory is short; otherwise this thread.
inline void deliver(announcer* background, std::unique_ptr<async_result> told, std::error_code ec, bool held) noexcept
{
    if (!background || !told->runs_user_code()) return told->deliver(ec, held);
    try {
        announcer::call one{[it = told.get(), ec, held] {
            std::unique_ptr<async_result> const mine{it};
            mine->deliver(ec, held);
        }};
        static_cast<void>(told.release());
        background->tell(std::move(one));
    } catch (std::bad_alloc const&) {
        told->deliver(ec, held);
    }
}

/// Effects: calls `on_error` of `options`, if the lock that they are of still lives. Returns: whether it does.
inline bool tell_if_alive(std::weak_ptr<lock_options const> const& options, error const& e) noexcept
{
    auto const told = options.lock();
    try {
        if (told) told->on_error(e);
    } catch (...) {  // NOLINT(bugprone-empty-catch): as in `report`
    }
    return told != nullptr;
}

/// Returns: a hook that calls `options->on_error` in a thread of `background`, or at once if that is null or memory is
/// short; empty if there is no `on_error`. It refers to `options`. A report that is still pending when the lock is
/// destroyed, and with it the last owner of `options`, is dropped.
[[nodiscard]] inline error_hook hook_of(announcer* background,
                                        std::shared_ptr<lock_options const> const& options) noexcept
{
    if (!options->on_error) return {};
    return [background, &options](error const& e) {
        if (!background) return options->on_error(e);
        try {
            background->report([of = std::weak_ptr{options}, e]() noexcept { tell_if_alive(of, e); });
        } catch (std::bad_alloc const&) {
            options->on_error(e);
        }
    };
}

/// Effects: reports the notices of the servers of `store` to `hook`. Called with no lock held, and after all that the
/// lease needs is done: the hook may be slow, and may ask for the lock.
inline void report_servers(lock_store& store, error_hook const& hook) noexcept
{
    if (!hook) return;
    for (auto const& one : store.take_notices()) report(hook, one);
}

}  // namespace holdfast::detail
