// SPDX-License-Identifier: MIT
//
// A made-up time, and answers.
#pragma once

#include "support/catch.hpp"

#include <holdfast/core/clock.hpp>
#include <holdfast/redis/commands.hpp>
#include <holdfast/redis/error.hpp>

#include <chrono>
#include <cstdint>

namespace holdfast::test {

inline constexpr auto t0 = boot_clock::time_point{std::chrono::hours{100}};

inline redis::answer yes(std::uint64_t fence = 0) { return redis::answer::yes(fence); }
inline redis::answer no(std::chrono::milliseconds left = {}) { return redis::answer::no(left); }
inline redis::answer failed(redis::errc why) { return redis::answer::failed(make_error_code(why)); }

}  // namespace holdfast::test
