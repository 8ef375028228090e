// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/error.hpp>
#include <holdfast/core/options.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/lock/announcer.hpp>
#include <holdfast/lock/report.hpp>

#include <memory>
#include <new>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::detail {

/// Effects: stops `lost`, where somebody has asked for its token, and tells `options->on_error` of `why`: in threads of `background`, where that is
/// not null and there is memory for it; otherwise before it returns. What is not told yet when the last one has let go of `options`, as the
/// lock is destroyed, is told to nobody.
inline void announce(announcer* background, std::optional<std::stop_source> lost, std::shared_ptr<lock_options const> const& options,
                     std::string_view name, failure const& why) noexcept
{
    if (background) {
        try {
            if (lost) background->stop([source = *lost]() mutable { source.request_stop(); });
            lost.reset();
            if (!options->on_error) return;
            return background->report([of = std::weak_ptr{options}, lock = std::string{name}, why] {
                if (auto const told = of.lock()) report(*told, lock, why);
            });
        } catch (std::bad_alloc const&) {  // NOLINT(bugprone-empty-catch): then here
        }
    }
    if (lost) lost->request_stop();
    report(*options, name, why);
}

/// Effects: calls `f` with options whose `on_error` has that of `options` called in a thread of `background`, as above; otherwise with `options`.
template <class F>
void tell(announcer* background, std::shared_ptr<lock_options const> const& options, F&& f) noexcept
{
    std::optional<lock_options> posting;
    try {
        if (background && options->on_error) {
            posting.emplace(*options);
            posting->on_error = [background, &options](error const& e) {
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
    } catch (std::bad_alloc const&) {
        posting.reset();
    }
    f(posting ? *posting : *options);
}

}  // namespace holdfast::detail
