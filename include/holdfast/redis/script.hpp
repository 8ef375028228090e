// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// A script that runs on the server, and the SHA-1 by which it is called. Scripts are constants: all input goes in KEYS
/// and ARGV. Their text is put together when it is sent, which is seldom: a compiler takes longer.
struct script {
    std::span<std::string_view const> parts;
    std::string_view sha1;

    /// Throws: `std::bad_alloc`.
    [[nodiscard]] std::string text() const
    {
        std::string all;
        for (auto const part : parts) all += part;
        return all;
    }
};

namespace detail {

[[nodiscard]] constexpr std::array<std::string_view, 1> parts_of(std::string_view text) noexcept { return {text}; }

template <std::size_t N>
[[nodiscard]] constexpr std::array<std::string_view, N> const&
parts_of(std::array<std::string_view, N> const& parts) noexcept
{
    return parts;
}

}  // namespace detail

/// The text of a script that has several parts. Each is a text, or has several itself.
template <auto const&... Parts>
inline constexpr auto joined = [] {
    std::array<std::string_view, (detail::parts_of(Parts).size() + ...)> all;
    auto at = all.begin();
    ((at = std::ranges::copy(detail::parts_of(Parts), at).out), ...);
    return all;
}();

}  // namespace holdfast::redis
