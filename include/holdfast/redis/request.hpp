// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>

namespace holdfast::inline HOLDFAST_ABI::redis {

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

/// A request in the server's format: an array of bulk strings. One object makes many: its memory is used again.
/// Source: "Redis serialization protocol specification" (redis.io).
class request {
public:
    request() = default;
    request(request const&) = delete;
    request& operator=(request const&) = delete;

    /// Effects: begins a request, in place of the last one.
    void begin() noexcept
    {
        used_ = longest_line;
        count_ = 0;
    }

    /// Effects: appends a word. Throws: `std::bad_alloc`.
    void add(word const& one)
    {
        auto const size = one.size();
        auto const needed = used_ + longest_line + size + 2;
        if (memory_.size() < needed) memory_.resize(2 * needed);
        auto* at = put(line(memory_.data() + used_, '$', size), one.head);
        at = end_line(put(put(at, one.body), one.tail));
        used_ = static_cast<std::size_t>(at - memory_.data());
        ++count_;
    }
    template <std::integral I>
    void add(I number)
    {
        std::array<char, longest_line> digits;  // NOLINT(*-pro-type-member-init): filled by to_chars
        add(std::string_view{digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr});
    }

    /// Returns: the bytes of the request, until another member is called. Requires: it has a word.
    [[nodiscard]] std::string_view bytes() noexcept
    {
        std::array<char, longest_line> first;  // NOLINT(*-pro-type-member-init): filled by line
        auto const size = static_cast<std::size_t>(line(first.data(), '*', count_) - first.data());
        auto* const begin = memory_.data() + longest_line - size;
        std::copy_n(first.data(), size, begin);
        return {begin, used_ - longest_line + size};
    }

private:
    static constexpr std::size_t longest_line = 23;  // a type, 20 digits, an end of line

    static char* put(char* at, std::string_view piece) noexcept
    {
        return piece.empty() ? at : std::copy(piece.begin(), piece.end(), at);
    }

    static char* end_line(char* at) noexcept
    {
        *at++ = '\r';
        *at++ = '\n';
        return at;
    }

    static char* line(char* at, char type, std::size_t number) noexcept
    {
        *at++ = type;
        return end_line(std::to_chars(at, at + longest_line - 3, number).ptr);
    }

    std::string memory_;               // the first line is before the words, which say how many there are
    std::size_t used_ = longest_line;  // of it
    std::size_t count_ = 0;            // of the words
};

}  // namespace holdfast::redis
