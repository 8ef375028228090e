// SPDX-License-Identifier: MIT
//
// What limits a crowd on one Redis: a lock that does nothing but serve those who wait in turn. A release gives the key
// to the first of a list, and tells it. It forgets nobody who died, and hears of no release that is lost.
#pragma once

#include "bare_redis.hpp"

#include <hiredis/hiredis.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

namespace holdfast::benchmark {

class lua_queue {
public:
    lua_queue(std::uint16_t port, unsigned number)
        : ask_{connect(port)}, hear_{connect(port)}, me_{"w" + std::to_string(number)}
    {
        take_ = load("if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', 30000) then return 1 end "
                     "redis.call('RPUSH', KEYS[2], ARGV[1]) return 0");
        give_ = load("if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end "
                     "local first = redis.call('LPOP', KEYS[2]) "
                     "if not first then return redis.call('DEL', KEYS[1]) end "
                     "redis.call('SET', KEYS[1], first, 'PX', 30000) redis.call('PUBLISH', first, '') return 1");
        free_reply(::redisCommand(hear_.get(), "SUBSCRIBE %s", me_.c_str()));
    }

    void lock()
    {
        if (run(take_) == 1) return;
        void* message = nullptr;
        if (::redisGetReply(hear_.get(), &message) != REDIS_OK) throw std::runtime_error{"the Lua queue: no message"};
        free_reply(message);
    }

    void unlock()
    {
        if (run(give_) != 1) throw std::runtime_error{"the Lua queue: not its own"};
    }

private:
    using connection = std::unique_ptr<redisContext, decltype(&::redisFree)>;

    static connection connect(std::uint16_t port)
    {
        connection c{::redisConnect("127.0.0.1", port), &::redisFree};
        if (!c || c->err != 0) throw std::runtime_error{"the Lua queue: no server"};
        return c;
    }

    static void free_reply(void* reply)
    {
        if (reply == nullptr) throw std::runtime_error{"the Lua queue: no answer"};
        ::freeReplyObject(reply);
    }

    std::string load(char const* script)
    {
        auto* const r = static_cast<redisReply*>(::redisCommand(ask_.get(), "SCRIPT LOAD %s", script));
        std::string sha = r == nullptr ? "" : std::string{r->str, static_cast<std::size_t>(r->len)};
        free_reply(r);
        return sha;
    }

    long long run(std::string const& sha)
    {
        auto* const r = static_cast<redisReply*>(
            ::redisCommand(ask_.get(), "EVALSHA %s 2 orders waiters %s", sha.c_str(), me_.c_str()));
        auto const n = r == nullptr ? -1 : r->integer;
        free_reply(r);
        return n;
    }

    connection ask_;
    connection hear_;
    std::string me_;
    std::string take_;
    std::string give_;
};

}  // namespace holdfast::benchmark
