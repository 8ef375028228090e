// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/name.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/impl/urls.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

namespace holdfast::inline HOLDFAST_ABI {

namespace detail {

/// The function that opens URLs that begin with `prefix`, and the component that brings it.
struct url_scheme {
    std::string_view prefix;
    store (*open)(std::string_view url);
    std::string component;
};

/// Returns: whether `text` can be the scheme of a URL.
[[nodiscard]] constexpr bool is_scheme(std::string_view text) noexcept
{
    auto const is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
    return !text.empty() && text.size() <= 32 && is_letter(text.front()) &&
           std::all_of(text.begin(), text.end(), [&](char c) {
               return is_letter(c) || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
           });
}

/// Effects: see `make_store`. Of text without a known scheme, the message repeats a word only if `://` follows it, or
/// if it is one of the known schemes: any other may be a password, or have one in it.
[[nodiscard]] HOLDFAST_INLINE store open_url(std::string_view url)
{
    std::array const schemes{
        detail::url_scheme{"memory:", &detail::open_memory_url, "memory"},
        detail::url_scheme{"redis://", &detail::open_redis_url, "redis"},
        detail::url_scheme{"rediss://", &detail::open_redis_url, "redis"},
        detail::url_scheme{"unix://", &detail::open_redis_url, "redis"},
        detail::url_scheme{"redlock+", &detail::open_redlock_url, "redlock"},
        detail::url_scheme{"zookeeper://", &detail::open_zookeeper_url, "zookeeper"},
    };
    auto const what_brings = [](std::string const& component) {
#ifdef HOLDFAST_COMPILED
        return "include <holdfast/impl/" + component + ".hpp> in one, or with CMake ask for the component " +
               component + " beside compiled";
#else
        return "include <holdfast/" + component + ".hpp> in one, and link holdfast::" + component;
#endif
    };
    std::string known;
    for (auto const& one : schemes) {
        if (!url.starts_with(one.prefix)) {
            known += known.empty() ? "" : ", ";
            known += one.prefix;
            if (one.prefix.ends_with('+')) known += "redis://";
            continue;
        }
        if (one.open) return one.open(url);
        throw error{errc::misconfigured, "a store is asked for by a URL that begins with " + std::string{one.prefix} +
                                             ", which no file of this program knows: " + what_brings(one.component)};
    }
    auto const scheme = url.substr(0, url.find(':'));
    bool const shown = (is_scheme(scheme) && url.substr(scheme.size()).starts_with("://")) ||
                       std::any_of(schemes.begin(), schemes.end(), [&](url_scheme const& one) {
                           return one.prefix.substr(0, one.prefix.find_first_of(":+")) == scheme;
                       });
    throw error{errc::misconfigured,
                "a store is asked for by " +
                    (shown ? "a URL that begins with " + quoted(scheme) : "text that has no scheme") +
                    "; it has to begin with " + known};
}

}  // namespace detail

}  // namespace holdfast
