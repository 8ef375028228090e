// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/error.hpp>

#include <functional>
#include <string>

namespace holdfast::test {

/// Returns: what `part` says of the error with which `f` is refused as misconfigured, by default its message; otherwise
/// a sentence that says what came instead.
template <class F, class Part = decltype(&error::what)>
[[nodiscard]] std::string refusal(F&& f, Part part = &error::what)
try {
    f();
    return "(not refused)";
} catch (error const& e) {
    if (e.code() != errc::misconfigured) return "(another error: " + e.code().message() + ")";
    return std::string{std::invoke(part, e)};
}

}  // namespace holdfast::test
