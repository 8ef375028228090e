// SPDX-License-Identifier: MIT
#include <holdfast/redis.hpp>

#include <mutex>

void guarded(void (*section)())
{
    static holdfast::redis::client redis{"redis://127.0.0.1:6379"};
    holdfast::redis::mutex orders{redis, "orders/42"};
    std::scoped_lock hold{orders};
    section();
}
