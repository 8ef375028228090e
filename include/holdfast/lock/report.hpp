// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/error.hpp>
#include <holdfast/core/name.hpp>
#include <holdfast/core/options.hpp>
#include <holdfast/core/result.hpp>

#include <new>
#include <string>
#include <string_view>

namespace holdfast::detail {

/// Returns: `why` as an error of the lock `name`; `over`: it is over.
[[nodiscard]] inline error error_of(std::string_view name, failure const& why, bool over = false)
{
    auto text = "lock " + holdfast::quoted(name);
    if (!why.detail.empty()) text.append(": ").append(why.detail);
    return {why.code, text, {.lock_name = std::string{name}, .server = why.server, .over = over}};
}

/// Effects: tells `options.on_error` what cannot be thrown. What it throws is dropped.
inline void report(lock_options const& options, std::string_view name, failure const& why, bool over = false) noexcept
try {
    if (options.on_error) options.on_error(error_of(name, why, over));
} catch (...) {  // NOLINT(bugprone-empty-catch): the hook is the last resort; there is nobody left to tell
}

/// Effects: tells `options.on_error` what there is to tell of the servers behind `backend`, if it keeps that: none of it is of one lock. Called
/// with no lock held.
template <class B>
void report_servers(B& backend, lock_options const& options) noexcept
{
    if constexpr (requires { backend.take_news(); }) {
        if (!options.on_error) return;
        for (auto const& one : backend.take_news()) {
            try {
                options.on_error(error{one.code, one.text, {.server = one.server, .over = one.over}});
            } catch (...) {  // NOLINT(bugprone-empty-catch): as above
            }
        }
    }
}

/// Effects: tells `options.on_error` what `backend` has to say of the lock `name`, if it keeps that. Called with no lock held, and when the lease is
/// looked after: the hook may take its time, and may ask for the lock.
template <class B, class Key>
void report_remark(B& backend, Key const& key, lock_options const& options, std::string_view name) noexcept
try {
    if constexpr (requires { backend.take_remark(key); })
        if (auto const seen = backend.take_remark(key)) report(options, name, *seen);
} catch (std::bad_alloc const&) {  // NOLINT(bugprone-empty-catch): nothing depends on it
}

}  // namespace holdfast::detail
