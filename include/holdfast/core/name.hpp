// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/result.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace holdfast::inline HOLDFAST_ABI {

/// The longest name of a lock, in bytes.
inline constexpr std::size_t max_name_size = 65'536;

/// Effects: none if `name` can be the name of a lock in any backend: 1 to 65,536 bytes, of any value.
/// Throws: `error` (`misconfigured`) otherwise.
inline void check_name(std::string_view name)
{
    if (name.empty()) throw error{errc::misconfigured, "the name of a lock is empty; give it at least one character"};
    if (name.size() > max_name_size)
        throw error{errc::misconfigured, "the name of a lock has " + std::to_string(name.size()) + " bytes; at most " +
                                             std::to_string(max_name_size) + " are allowed"};
}

namespace detail {

/// Effects: appends `c` to `text`; if it is not printable ASCII, its number in hexadecimal. The escape character
/// becomes a backslash and `x1b`.
inline void append_printable(std::string& text, char c)
{
    constexpr std::string_view hexadecimal = "0123456789abcdef";
    auto const byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
        text += c;
    } else {
        text += "\\x";
        text += hexadecimal[byte >> 4U];
        text += hexadecimal[byte & 15U];
    }
}

/// Returns: the small letter of `c`, if it is a capital one of ASCII; otherwise `c`.
[[nodiscard]] constexpr char in_small(char c) noexcept
{
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace detail

/// Returns: `text` as messages show it: every byte that is not printable ASCII is escaped. For what others have
/// written, such as the label of a `lock_holder`, before it goes to a terminal. Throws: `std::bad_alloc`.
[[nodiscard]] inline std::string printable(std::string_view text)
{
    std::string out;
    for (char const c : text) detail::append_printable(out, c);
    return out;
}

/// Returns: `name` as messages show it: quoted, shortened, with every byte that is not printable ASCII escaped.
[[nodiscard]] inline std::string quoted(std::string_view name)
{
    constexpr std::size_t longest = 128;
    std::string text = "\"";
    for (char const c : name.substr(0, longest)) {
        if (c == '"' || c == '\\') text += '\\';
        detail::append_printable(text, c);
    }
    text += name.size() > longest ? "…\"" : "\"";
    return text;
}

namespace detail {

/// Returns: `why` as an error of the lock `name`; if that is empty, of no lock.
[[nodiscard]] inline error error_of(std::string_view name, failure const& why)
{
    auto text = name.empty() ? why.detail : "lock " + quoted(name);
    if (!name.empty() && !why.detail.empty()) text.append(": ").append(why.detail);
    return {why.code, text, {.lock_name = std::string{name}, .server = why.server}};
}

}  // namespace detail

}  // namespace holdfast
