// SPDX-License-Identifier: MIT
//
// What every fuzz target shares: the function that libFuzzer calls with its input, and how a property is required of
// what came out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <source_location>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size);

namespace holdfast::test {

/// Effects: ends the program, which the fuzzer takes for a finding, where `good` is false.
inline void require(bool good, char const* property, std::source_location where = std::source_location::current())
{
    if (good) return;
    std::fprintf(stderr, "%s:%u: not true: %s\n", where.file_name(), static_cast<unsigned>(where.line()), property);
    std::abort();
}

/// Returns: the input as text.
[[nodiscard]] inline std::string_view text_of(std::uint8_t const* data, std::size_t size) noexcept
{
    return {reinterpret_cast<char const*>(data), size};
}

}  // namespace holdfast::test
