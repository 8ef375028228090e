// SPDX-License-Identifier: MIT
#pragma once

#include <support/redis_server.hpp>

#include <charconv>
#include <string>

namespace holdfast::faults {

/// Returns: how many attempts to take a lock, releases and renewals a server has seen.
[[nodiscard]] inline long lock_requests(test::redis_server& server)
{
    auto const info = server.command({"INFO", "commandstats"}).text;
    long sum = 0;
    for (std::string const field : {"cmdstat_evalsha:calls=", "cmdstat_eval:calls="}) {
        auto const at = info.find(field);
        long n = 0;
        if (at != std::string::npos) std::from_chars(info.data() + at + field.size(), info.data() + info.size(), n);
        sum += n;
    }
    return sum;
}

}  // namespace holdfast::faults
