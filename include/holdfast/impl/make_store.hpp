// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/name.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/impl/urls.hpp>

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

/// Effects: see `make_store`.
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
            continue;
        }
        if (one.open) return one.open(url);
        throw error{errc::misconfigured, "a store is asked for by a URL that begins with " + std::string{one.prefix} +
                                             ", which no file of this program knows: " + what_brings(one.component)};
    }
    auto const scheme = url.substr(0, url.find(':'));
    bool const has_user = scheme.find('@') != std::string_view::npos;  // and no scheme before it
    throw error{errc::misconfigured, "a store is asked for by a URL that begins with " +
                                         (has_user ? "a user" : quoted(scheme.substr(0, 32))) +
                                         "; it has to begin with " + known};
}

}  // namespace detail

}  // namespace holdfast
