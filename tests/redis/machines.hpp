// SPDX-License-Identifier: MIT
//
// What the tests of the machines have in common: a made-up time, sets of nodes, answers.
#pragma once

#include "support/catch.hpp"

#include <holdfast/core/clock.hpp>
#include <holdfast/redis/commands.hpp>
#include <holdfast/redis/error.hpp>
#include <holdfast/redis/node_set.hpp>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <string>

namespace holdfast::test {

inline constexpr auto t0 = boot_clock::time_point{std::chrono::hours{100}};
inline constexpr std::chrono::milliseconds node_timeout{50};

[[nodiscard]] redis::node_set nodes(std::convertible_to<unsigned> auto... which)
{
    redis::node_set set;
    (set.add(static_cast<unsigned>(which)), ...);
    return set;
}

inline redis::answer yes(std::uint64_t fence = 0) { return redis::answer::yes(fence); }
inline redis::answer no(std::chrono::milliseconds left = {}) { return redis::answer::no(left); }
inline redis::answer failed(redis::errc why) { return redis::answer::failed(make_error_code(why)); }

}  // namespace holdfast::test

template <>
struct Catch::StringMaker<holdfast::redis::node_set> {
    static std::string convert(holdfast::redis::node_set set)
    {
        std::string text = "{";
        set.for_each([&](unsigned node) { text += " " + std::to_string(node); });
        return text + " }";
    }
};
