// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// The most words that a request has.
inline constexpr std::size_t max_words = 20;

/// Effects: appends a request of these words in the server's format: an array of bulk strings.
/// Source: "Redis serialization protocol specification" (redis.io). Throws: `std::bad_alloc`.
inline void format(std::string& bytes, std::span<std::string_view const> words)
{
    constexpr std::size_t longest_line = 23;  // a type, 20 digits, an end of line
    auto const before = bytes.size();
    auto most = before + longest_line;
    for (auto const word : words) most += longest_line + word.size() + 2;
    bytes.resize(most);
    auto* at = bytes.data() + before;
    auto const end_line = [&] {
        *at++ = '\r';
        *at++ = '\n';
    };
    auto const line = [&](char type, std::size_t number) {
        *at++ = type;
        at = std::to_chars(at, bytes.data() + bytes.size(), number).ptr;
        end_line();
    };
    line('*', words.size());
    for (auto const word : words) {
        line('$', word.size());
        at = std::copy(word.begin(), word.end(), at);
        end_line();
    }
    bytes.resize(static_cast<std::size_t>(at - bytes.data()));
}

}  // namespace holdfast::redis
