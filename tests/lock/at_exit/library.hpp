// SPDX-License-Identifier: MIT
#pragma once

#include <system_error>

/// Returns: the category of a store, or of the library itself ("holdfast", "holdfast.redis", …), as the shared library
/// knows it.
[[gnu::visibility("default")]] std::error_category const& category_in_library(char const* name) noexcept;

/// Throws: a `holdfast::error` of the shared library's own, `unavailable`.
[[gnu::visibility("default"), noreturn]] void throw_in_library();
