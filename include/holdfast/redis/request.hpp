// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <charconv>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace holdfast::redis {

/// The most words that a request of holdfast's has.
inline constexpr std::size_t max_words = 16;

/// Returns: a request of these words as the server reads it: an array of bulk strings.
/// Source: "Redis serialization protocol specification" (redis.io). Throws: `std::bad_alloc`.
[[nodiscard]] inline std::string format(std::span<std::string_view const> words)
{
    constexpr std::size_t most_digits = 20;
    auto size = most_digits + 3;
    for (auto const word : words) size += word.size() + most_digits + 5;
    std::string bytes;
    bytes.reserve(size);
    auto const line = [&](char type, std::size_t number) {
        std::array<char, most_digits> digits;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled by to_chars
        auto const* const end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
        bytes += type;
        bytes.append(digits.data(), static_cast<std::size_t>(end - digits.data())).append("\r\n");
    };
    line('*', words.size());
    for (auto const word : words) {
        line('$', word.size());
        bytes.append(word).append("\r\n");
    }
    return bytes;
}

}  // namespace holdfast::redis
