// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/redis.hpp>
#include <holdfast/redlock.hpp>

#include <chrono>

namespace holdfast::benchmark {

// What a lock costs is measured without the record of its holder, as the limits keep none. What that costs is a row of
// P1 and of P2: "with the record of the holder".

inline redis::client_options const unnamed{.name_holder = false};

[[nodiscard]] inline redlock::masters_options unnamed_masters(std::chrono::milliseconds guard)
{
    return {.restart_guard = guard, .name_holder = false};
}

}  // namespace holdfast::benchmark
