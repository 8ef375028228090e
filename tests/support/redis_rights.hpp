// SPDX-License-Identifier: MIT
//
// What a user of a Redis server has to be allowed, as README tells its readers: here is the one place that holds the text, and
// support_test/redis_rights_test.cpp finds the same in README.
#pragma once

#include <string>
#include <string_view>

namespace holdfast::test {

inline constexpr std::string_view fence_keys = "~holdfast:fence:*";
inline constexpr std::string_view free_channels = "&holdfast:free:*";
inline constexpr std::string_view lock_commands = "+set +get +pttl +pexpire +time +incrby +eval +evalsha +publish +subscribe +unsubscribe";
inline constexpr std::string_view redlock_commands = "+info";
inline constexpr std::string_view guard_commands = "+info";
inline constexpr std::string_view database_commands = "+select";

/// Returns: a line of redis.conf for the user `app`, who may do what a lock does, and `more`, with the keys that `names` allows ("~orders*"),
/// and nothing else.
inline std::string least_rights(std::string_view password, std::string_view names, std::string_view more = {})
{
    std::string line = "user app on >";
    line.append(password).append(" ").append(names).append(" ").append(fence_keys).append(" resetchannels ").append(free_channels);
    return line.append(" -@all ").append(lock_commands).append(" ").append(more);
}

}  // namespace holdfast::test
