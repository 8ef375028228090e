// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/error.hpp>

#include <string>

namespace holdfast::test {

/// Returns: the message with which `f` is refused as misconfigured; otherwise a sentence that says what came instead.
template <class F>
[[nodiscard]] std::string refusal(F&& f)
try {
    f();
    return "(not refused)";
} catch (error const& e) {
    return e.code() == errc::misconfigured ? e.what() : "(another error: " + e.code().message() + ")";
}

}  // namespace holdfast::test
