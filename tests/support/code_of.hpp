// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <system_error>

namespace holdfast::test {

/// Returns: the code with which `f` throws; no error where it does not. The message goes to `what`.
template <class F>
std::error_code code_of(F&& f, std::string* what = nullptr)
try {
    f();
    return {};
} catch (std::system_error const& e) {
    if (what) *what = e.what();
    return e.code();
}

}  // namespace holdfast::test
