// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/name.hpp>
#include <holdfast/core/result.hpp>

#include <functional>
#include <new>
#include <string_view>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// Returns: the error of a call in a child of `fork` for the lock `name` of a client of the parent.
[[nodiscard]] inline error made_before_fork(std::string_view name)
{
    return error_of(name,
                    {make_error_code(errc::misconfigured), "its client was made before fork(); make one in the child"});
}

using error_hook = std::function<void(error const&)>;

/// Effects: reports to `hook`, an `on_error`, what cannot be thrown. What the hook throws is dropped. Called with no
/// lock held.
inline void report(error_hook const& hook, error const& what) noexcept
try {
    if (hook) hook(what);
} catch (...) {  // NOLINT(bugprone-empty-catch): the hook is the last resort
}

/// As above, for the lock `name`.
inline void report(error_hook const& hook, std::string_view name, failure const& why) noexcept
try {
    if (hook) report(hook, error_of(name, why));
} catch (std::bad_alloc const&) {  // NOLINT(bugprone-empty-catch): as above
}

}  // namespace holdfast::detail
