// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>

#include <algorithm>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// The most words that a request has.
inline constexpr std::size_t max_words = 23;

/// A word of a request, in up to three pieces: what is made of a lock's name is not kept.
struct word {
    word() = default;
    /// Most are of one piece.
    template <std::convertible_to<std::string_view> S>
    word(S const& all) noexcept : body{all}  // NOLINT(google-explicit-constructor)
    {
    }
    word(std::string_view before, std::string_view middle, std::string_view after) noexcept
        : head{before}, body{middle}, tail{after}
    {
    }

    [[nodiscard]] std::size_t size() const noexcept { return head.size() + body.size() + tail.size(); }

    /// Throws: `std::bad_alloc`.
    [[nodiscard]] std::string text() const { return std::string{head}.append(body).append(tail); }

    std::string_view head{};
    std::string_view body{};
    std::string_view tail{};
};

/// Effects: appends a request of these words in the server's format: an array of bulk strings.
/// Source: "Redis serialization protocol specification" (redis.io). Throws: `std::bad_alloc`.
inline void format(std::string& bytes, std::span<word const> words)
{
    constexpr std::size_t longest_line = 23;  // a type, 20 digits, an end of line
    auto const before = bytes.size();
    auto most = before + longest_line;
    for (auto const& one : words) most += longest_line + one.size() + 2;
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
    for (auto const& one : words) {
        line('$', one.size());
        for (auto const piece : {one.head, one.body, one.tail}) at = std::copy(piece.begin(), piece.end(), at);
        end_line();
    }
    bytes.resize(static_cast<std::size_t>(at - bytes.data()));
}

}  // namespace holdfast::redis
