// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>

#include <algorithm>
#include <array>
#include <string_view>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// A script that runs on the server, and the SHA-1 by which it is called. Scripts are constants: all input goes in KEYS
/// and ARGV.
struct script {
    std::string_view text;
    std::string_view sha1;
};

/// The text of a script that has several parts.
template <std::string_view const&... Parts>
inline constexpr auto text_of = [] {
    std::array<char, (Parts.size() + ...)> all{};
    auto at = all.begin();
    ((at = std::copy(Parts.begin(), Parts.end(), at)), ...);
    return all;
}();

template <std::string_view const&... Parts>
inline constexpr std::string_view joined{text_of<Parts...>.data(), text_of<Parts...>.size()};

}  // namespace holdfast::redis
