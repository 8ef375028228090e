// SPDX-License-Identifier: MIT
#pragma once

#include "connection.hpp"

#include <cstddef>
#include <string>
#include <utility>

namespace holdfast::test {

/// How the first of those that wait for a lock is called: by whoever may publish.
struct waiter_call {
    std::string channel;  ///< empty: none waits
    std::string text;

    [[nodiscard]] explicit operator bool() const noexcept { return !channel.empty(); }
};

/// Returns: how a server would call the waiter whose turn is next, if that one hears it.
[[nodiscard]] inline waiter_call first_waiter(connection& server, std::string const& lock)
{
    constexpr std::size_t inbox_digits = 16;
    auto const first = server({"ZRANGE", "holdfast:queue:{" + lock + '}', "0", "0"}).elements;
    if (first.empty()) return {};
    auto const& who = first.front().text;
    auto channel = "holdfast:wake:" + who.substr(0, inbox_digits);
    if (server({"PUBSUB", "NUMSUB", channel}).elements.at(1).integer == 0) return {};
    return {.channel = std::move(channel), .text = who.substr(inbox_digits) + ' ' + lock};
}

}  // namespace holdfast::test
