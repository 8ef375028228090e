// SPDX-License-Identifier: MIT
#include <holdfast/memory.hpp>

void show(holdfast::memory::mutex& prices)
{
    holdfast::with_shared_lock(prices, [] {});
}
