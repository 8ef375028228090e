// SPDX-License-Identifier: MIT
//
// What a user of a Redis server has to be allowed, as docs/redis.md tells its readers: here is the one place that holds
// the text, and support_test/redis_rights_test.cpp finds the same there.
#pragma once

#include <string>
#include <string_view>

namespace holdfast::test {

inline constexpr std::string_view lock_commands =
    "+set +getrange +pttl +pexpire +time +eval +evalsha +publish +subscribe +unsubscribe";
inline constexpr std::string_view queue_commands = "+zadd +zrem +zrank +zpopmin +zrevrange";
inline constexpr std::string_view shared_commands = "+zscore +zremrangebyscore +hmget +hset";
inline constexpr std::string_view redlock_commands = "+info";
inline constexpr std::string_view database_commands = "+select";
inline constexpr std::string_view operator_commands = "+scan +zcard";

/// Returns: what has to be allowed beside `names` ("orders*", or one name), `kind` is what it begins with: with a tag
/// of our own, and of theirs.
inline std::string beside(std::string_view kind, std::string_view names)
{
    std::string const own{names};
    return std::string{kind} + "{" + own + (own.ends_with('*') ? " " : "} ") + std::string{kind} + own;
}

/// Returns: the same, where the names with a tag of theirs have a mark.
inline std::string apart(std::string_view kind, std::string_view names)
{
    std::string const own{names};
    return std::string{kind} + "{" + own + (own.ends_with('*') ? " " : "} ") + std::string{kind} + ":" + own;
}

/// Returns: the patterns of the keys of locks that are called `names`.
inline std::string lock_keys_of(std::string_view names)
{
    return "~" + std::string{names} + " " + beside("~holdfast:fence:", names);
}

/// Returns: those of the queues of their waiters.
inline std::string queue_keys_of(std::string_view names)
{
    return apart("~holdfast:queue:", names) + " " + apart("~holdfast:next:", names);
}

/// Returns: those of what a `shared_mutex` keeps beside its key.
inline std::string shared_keys_of(std::string_view names)
{
    return apart("~holdfast:readers:", names) + " " + apart("~holdfast:phase:", names);
}

/// Returns: those of the records of their holders.
inline std::string holder_keys_of(std::string_view names) { return apart("~holdfast:holder:", names); }

inline constexpr std::string_view queue_channels = "&holdfast:wake:*";

/// Returns: the patterns of their channels.
inline std::string free_channels_of(std::string_view names) { return beside("&holdfast:free:", names); }

/// Returns: a line of redis.conf for the user `app`, who may do what locks do whose names match `names` ("orders*
/// invoices"), and `more`, and nothing else. Without the queue: what 0.1 asked for, which a
/// `shared_mutex` cannot do with.
inline std::string least_rights(std::string_view password, std::string_view names, std::string_view more = {},
                                bool queue = true)
{
    std::string keys;
    std::string channels;
    while (!names.empty()) {
        auto const one = names.substr(0, names.find(' '));
        names.remove_prefix(one.size() == names.size() ? names.size() : one.size() + 1);
        keys.append(" ").append(lock_keys_of(one));
        if (queue) keys.append(" ").append(queue_keys_of(one)).append(" ").append(shared_keys_of(one));
        channels.append(" ").append(free_channels_of(one));
    }
    if (queue) channels.append(" ").append(queue_channels);
    std::string line = "user app on >";
    line.append(password).append(keys).append(" resetchannels").append(channels);
    line.append(" -@all ").append(lock_commands).append(" ");
    if (queue) line.append(queue_commands).append(" ").append(shared_commands).append(" ");
    return line.append(more);
}

inline constexpr std::string_view redisson_commands =
    "+set +getrange +pttl +pexpire +time +hexists +hset +hdel +hgetall +eval +evalsha +publish +subscribe +unsubscribe";

/// Returns: the patterns of the keys of locks in Redisson's layout that are called `names`, and of those beside them.
inline std::string redisson_keys_of(std::string_view names)
{
    std::string const own{names};
    return "~" + own + " ~{" + own + " " + beside("~redisson_lock_token:", names);
}

/// Returns: those of their channels.
inline std::string redisson_channels_of(std::string_view names)
{
    return beside("&redisson_lock__channel:", names) + " " + beside("&redisson_rwlock:", names);
}

/// Returns: as `least_rights`, for one kind of names in Redisson's layout.
inline std::string redisson_rights(std::string_view password, std::string_view names, std::string_view more)
{
    std::string line = "user app on >";
    line.append(password).append(" ").append(redisson_keys_of(names)).append(" resetchannels ");
    line.append(redisson_channels_of(names)).append(" -@all ").append(redisson_commands).append(" ");
    return line.append(more);
}

}  // namespace holdfast::test
