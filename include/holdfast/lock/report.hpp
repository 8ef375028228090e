// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/error.hpp>
#include <holdfast/core/name.hpp>
#include <holdfast/core/options.hpp>

#include <string>
#include <string_view>
#include <system_error>

namespace holdfast::detail {

/// Effects: tells `options.on_error` what cannot be thrown. What it throws is dropped.
inline void report(lock_options const& options, std::error_code code, std::string_view name, std::string_view what) noexcept
try {
    if (!options.on_error) return;
    auto text = "lock " + holdfast::quoted(name);
    if (!what.empty()) text.append(": ").append(what);
    options.on_error(error{code, text});
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
                options.on_error(error{one.code, one.text});
            } catch (...) {  // NOLINT(bugprone-empty-catch): as above
            }
        }
    }
}

}  // namespace holdfast::detail
