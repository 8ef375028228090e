// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::test {

/// Chooses among requests by their bytes as sent, framing included.
using request_predicate = std::function<bool(std::string_view request)>;

inline request_predicate any_request()
{
    return [](std::string_view) { return true; };
}

/// A text that the script of a release has, and that of an acquire, which may call a waiter, has not.
inline constexpr char const* of_release = "PUBLISH', ARGV[2]";

/// A command or argument: "EVALSHA", the name of a lock, an owner token.
inline request_predicate containing(std::string text)
{
    return [text = std::move(text)](std::string_view request) { return request.find(text) != std::string_view::npos; };
}

/// The nth of those that `matches` chooses, counted from 1, and no other.
inline request_predicate nth(int n, request_predicate matches)
{
    return [left = n, matches = std::move(matches)](std::string_view request) mutable {
        return matches(request) && --left == 0;
    };
}

}  // namespace holdfast::test
