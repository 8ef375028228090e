// SPDX-License-Identifier: MIT
#include <holdfast/holdfast.hpp>

#include <shared_mutex>

std::shared_timed_mutex prices;

void show()
{
    holdfast::with_shared_lock(prices, [] {});
}
