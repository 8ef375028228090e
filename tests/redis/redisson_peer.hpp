// SPDX-License-Identifier: MIT
//
// What a client of Redisson does at a server, in scripts that were written from what its layout is.
#pragma once

#include "observed.hpp"
#include "support/connection.hpp"
#include "support/redis_server.hpp"

#include <holdfast/redis/client_options.hpp>
#include <holdfast/redis/layout.hpp>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::test {

/// Returns: the options of a client of ours that shares its locks with such clients.
inline redis::client_options in_redisson()
{
    auto options = unhurried();
    options.layout = redis::layout::redisson;
    return options;
}

/// A thread of such a client, at the locks of one name.
class redisson_peer {
public:
    enum class outcome { not_owner, still_held, freed };

    static constexpr long hour = 3'600'000;

    redisson_peer(redis_server& server, std::string name, std::string owner = "6f1c3a52-0b1e-4f6e-9a55-3d2f81c07e11:47")
        : server_{server}, name_{std::move(name)}, owner_{std::move(owner)}
    {
    }

    [[nodiscard]] std::string const& owner() const noexcept { return owner_; }
    [[nodiscard]] std::string channel() const { return prefixed("redisson_lock__channel"); }
    [[nodiscard]] std::string read_write_channel() const { return prefixed("redisson_rwlock"); }
    [[nodiscard]] std::string counter() const { return prefixed("redisson_lock_token"); }

    /// Returns: what stands before the number in the keys of this thread's holds as a reader.
    [[nodiscard]] std::string timeout() const { return timeout_of(owner_); }
    [[nodiscard]] std::string timeout_of(std::string const& owner) const
    {
        return wrapped() + ":" + owner + ":rwlock_timeout";
    }

    // RLock

    /// Returns: whether this thread has the lock now, once more.
    [[nodiscard]] bool lock(long ttl = hour)
    {
        return granted(R"lua(
            local again = redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1
            if not again and redis.call('EXISTS', KEYS[1]) == 1 then return redis.call('PTTL', KEYS[1]) end
            redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
            redis.call('PEXPIRE', KEYS[1], ARGV[2])
            return false)lua",
                       {name_}, {owner_, std::to_string(ttl)});
    }

    /// Returns: the token of an RFencedLock; 0 if another has it.
    [[nodiscard]] long long lock_and_get_token(long ttl = hour)
    {
        if (!lock(ttl)) return 0;
        return server_.command({"INCR", counter()}).integer;
    }

    [[nodiscard]] outcome unlock()
    {
        return ended(R"lua(
            if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return -1 end
            if redis.call('HINCRBY', KEYS[1], ARGV[1], -1) > 0 then return 0 end
            redis.call('DEL', KEYS[1])
            redis.call('PUBLISH', KEYS[2], '0')
            return 1)lua",
                     {name_, channel()}, {owner_});
    }

    [[nodiscard]] bool renew(long ttl = hour)
    {
        return run(R"lua(
            return redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 and redis.call('PEXPIRE', KEYS[1], ARGV[2]) or 0)lua",
                   {name_}, {owner_, std::to_string(ttl)})
                   .integer == 1;
    }

    // RReadWriteLock

    [[nodiscard]] bool lock_read(long ttl = hour)
    {
        return granted(R"lua(
            local mode = redis.call('HGET', KEYS[1], 'mode')
            if mode == 'write' and redis.call('HEXISTS', KEYS[1], ARGV[1] .. ':write') == 0 then
              return redis.call('PTTL', KEYS[1])
            end
            if not mode then redis.call('HSET', KEYS[1], 'mode', 'read') end
            local hold = redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
            redis.call('SET', KEYS[2] .. ':' .. hold, '1', 'PX', ARGV[2])
            redis.call('PEXPIRE', KEYS[1], math.max(redis.call('PTTL', KEYS[1]), ARGV[2]))
            return false)lua",
                       {name_, timeout()}, {owner_, std::to_string(ttl)});
    }

    [[nodiscard]] bool lock_write(long ttl = hour)
    {
        return granted(R"lua(
            local mode = redis.call('HGET', KEYS[1], 'mode')
            local again = mode == 'write' and redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1
            if mode and not again then return redis.call('PTTL', KEYS[1]) end
            local left = again and redis.call('PTTL', KEYS[1]) or 0
            redis.call('HSET', KEYS[1], 'mode', 'write')
            redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
            redis.call('PEXPIRE', KEYS[1], left + ARGV[2])
            return false)lua",
                       {name_}, {owner_ + ":write", std::to_string(ttl)});
    }

    [[nodiscard]] outcome unlock_read()
    {
        return ended(R"lua(
            if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return -1 end
            local holds = redis.call('HINCRBY', KEYS[1], ARGV[1], -1)
            if holds == 0 then redis.call('HDEL', KEYS[1], ARGV[1]) end
            redis.call('DEL', KEYS[2] .. ':' .. holds + 1)
            local longest = 0
            for _, owner in ipairs(redis.call('HKEYS', KEYS[1])) do
              for hold = 1, tonumber(redis.call('HGET', KEYS[1], owner)) or 0 do
                longest = math.max(longest, redis.call('PTTL', ARGV[2] .. owner .. ':rwlock_timeout:' .. hold))
              end
            end
            if longest > 0 then redis.call('PEXPIRE', KEYS[1], longest) return 0 end
            if redis.call('HGET', KEYS[1], 'mode') == 'write' then return 0 end
            redis.call('DEL', KEYS[1])
            redis.call('PUBLISH', KEYS[3], '0')
            return 1)lua",
                     {name_, timeout(), read_write_channel()}, {owner_, wrapped() + ":"});
    }

    [[nodiscard]] outcome unlock_write()
    {
        return ended(R"lua(
            if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return -1 end
            if redis.call('HINCRBY', KEYS[1], ARGV[1], -1) > 0 then return 0 end
            redis.call('HDEL', KEYS[1], ARGV[1])
            if redis.call('HLEN', KEYS[1]) > 1 then
              redis.call('HSET', KEYS[1], 'mode', 'read')
              return 1
            end
            redis.call('DEL', KEYS[1])
            redis.call('PUBLISH', KEYS[2], '1')
            return 1)lua",
                     {name_, read_write_channel()}, {owner_ + ":write"});
    }

    /// Effects: as Redisson's watchdog for a reader: it renews the keys of all readers.
    [[nodiscard]] bool renew_read(long ttl = hour)
    {
        return run(R"lua(
            if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 0 end
            redis.call('PEXPIRE', KEYS[1], ARGV[2])
            for _, owner in ipairs(redis.call('HKEYS', KEYS[1])) do
              for hold = 1, tonumber(redis.call('HGET', KEYS[1], owner)) or 0 do
                redis.call('PEXPIRE', ARGV[3] .. owner .. ':rwlock_timeout:' .. hold, ARGV[2])
              end
            end
            return 1)lua",
                   {name_}, {owner_, std::to_string(ttl), wrapped() + ":"})
                   .integer == 1;
    }

private:
    using list = std::vector<std::string>;

    [[nodiscard]] bool tagged() const { return name_.find('{') != std::string::npos; }
    [[nodiscard]] std::string wrapped() const { return tagged() ? name_ : "{" + name_ + "}"; }
    [[nodiscard]] std::string prefixed(std::string const& what) const { return what + ":" + wrapped(); }

    reply run(std::string const& script, list const& keys, list const& arguments)
    {
        list words{"EVAL", script, std::to_string(keys.size())};
        words.insert(words.end(), keys.begin(), keys.end());
        words.insert(words.end(), arguments.begin(), arguments.end());
        auto got = server_.command(words);
        if (got.is_error()) throw std::runtime_error{got.text};
        return got;
    }

    bool granted(std::string const& script, list const& keys, list const& arguments)
    {
        return run(script, keys, arguments).is_nil();
    }

    outcome ended(std::string const& script, list const& keys, list const& arguments)
    {
        auto const n = run(script, keys, arguments).integer;
        return n < 0 ? outcome::not_owner : n == 0 ? outcome::still_held : outcome::freed;
    }

    redis_server& server_;
    std::string name_;
    std::string owner_;
};

}  // namespace holdfast::test
