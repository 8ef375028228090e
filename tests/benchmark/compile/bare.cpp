// SPDX-License-Identifier: MIT
//
// No lock that anybody should use: hiredis, and those headers of the standard library that a lock with leases and
// waiting threads cannot do without.
#include <hiredis/hiredis.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>

void guarded(void (*section)())
{
    static auto* const redis = redisConnect("127.0.0.1", 6379);
    static std::mutex orders;
    std::scoped_lock hold{orders};
    freeReplyObject(redisCommand(redis, "SET orders/42 token NX PX 30000"));
    section();
    freeReplyObject(redisCommand(redis, "EVALSHA hash 1 orders/42 token"));
}
