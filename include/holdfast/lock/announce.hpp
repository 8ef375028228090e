// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/announcer.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/hold_state.hpp>
#include <holdfast/core/options.hpp>
#include <holdfast/lock/report.hpp>

#include <memory>
#include <new>
#include <optional>
#include <stop_token>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// Effects: stops `lost`, if it has a value: in a thread of `background`, or in this one if that is null or memory is
/// short.
inline void stop_lost(announcer* background, std::optional<std::stop_source> lost) noexcept
{
    if (!lost) return;
    try {
        if (background) return background->stop([source = *lost]() mutable { source.request_stop(); });
    } catch (std::bad_alloc const&) {  // NOLINT(bugprone-empty-catch): then here
    }
    lost->request_stop();
}

/// Effects: `lost` is lost, and with it the hold of several locks that it is a part of; stops their tokens, as above.
inline void announce_loss(announcer* background, hold_state& lost) noexcept
{
    stop_lost(background, lost.mark_lost());
    auto const joint = lost.joint();  // one that it joins after this finds it lost
    if (joint) stop_lost(background, joint->mark_lost());
    stop_lost(background, lost.warning());
    if (joint) stop_lost(background, joint->warning());
}

/// Effects: the holder of `hold`, and of the hold of several locks that it is a part of, is asked to release it; stops
/// their tokens, as above. Returns: whether that is new.
[[nodiscard]] inline bool announce_request(announcer* background, hold_state& hold) noexcept
{
    std::optional<std::stop_source> tokens;
    if (!hold.request_release(tokens)) return false;
    stop_lost(background, std::move(tokens));
    if (auto const joint = hold.joint(); joint && joint->request_release(tokens = std::nullopt))
        stop_lost(background, std::move(tokens));
    return true;
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
            background->report([of = std::weak_ptr{options}, e]() noexcept {
                try {
                    if (auto const told = of.lock()) told->on_error(e);
                } catch (...) {  // NOLINT(bugprone-empty-catch): as in `report`
                }
            });
        } catch (std::bad_alloc const&) {
            options->on_error(e);
        }
    };
}

}  // namespace holdfast::detail
