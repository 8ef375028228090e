// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/redis/error.hpp>

#include <functional>
#include <string>
#include <system_error>
#include <vector>

namespace holdfast::faults {

using code = redis::errc;

/// What is the case of one answer.
struct words {
    std::string name;
    std::string answer;  ///< as bytes
    code expected;
    int asked = 1;  ///< how often one attempt sends its acquire: again where it cannot have been done, or nobody knows
};

/// Returns: what a Redis server may say instead of the answer to an acquire.
[[nodiscard]] std::vector<words> const& answers();

/// Returns: answers that spoil the connection: it is closed, and the acquire, which may have been done, is rolled back
/// over another one.
[[nodiscard]] std::vector<words> const& spoilt();

/// Returns: with what code `f` throws; none where it does not.
[[nodiscard]] std::error_code code_of(std::function<void()> const& f);

/// Returns: the code as it is written down.
[[nodiscard]] std::string said(std::error_code c);

}  // namespace holdfast::faults
