// SPDX-License-Identifier: MIT
#include <holdfast/mutex.hpp>

#include <mutex>

void guarded(holdfast::mutex& orders, void (*section)())
{
    std::scoped_lock hold{orders};
    section();
}
