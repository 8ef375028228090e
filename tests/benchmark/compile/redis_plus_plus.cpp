// SPDX-License-Identifier: MIT
#include <sw/redis++/patterns/redlock.h>
#include <sw/redis++/redis++.h>

#include <memory>
#include <mutex>

void guarded(void (*section)())
{
    static auto const redis = std::make_shared<sw::redis::Redis>("tcp://127.0.0.1:6379");
    sw::redis::RedMutex orders{redis, "orders/42"};
    std::scoped_lock hold{orders};
    section();
}
