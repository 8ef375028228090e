// SPDX-License-Identifier: MIT
//
// Catch2, whichever is installed: 2.13 (one header) or 3. Where their names differ, ours stand for both.
#pragma once

// An exception out of a CHECK ends the test case, as one out of a REQUIRE does.
#define CATCH_CONFIG_FAST_COMPILE
#define CATCH_CONFIG_ENABLE_ALL_STRINGMAKERS
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif

#include <string>

namespace holdfast::test {

/// Matches a string that has `text` in it: `CHECK_THAT(error.what(), contains("ttl"))`.
inline auto contains(std::string const& text)
{
#if __has_include(<catch2/catch_all.hpp>)
    return Catch::Matchers::ContainsSubstring(text);
#else
    return Catch::Matchers::Contains(text);
#endif
}

} // namespace holdfast::test
