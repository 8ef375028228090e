// SPDX-License-Identifier: MIT
#include <holdfast/memory.hpp>

void ship(holdfast::memory::mutex& orders)
{
    holdfast::leased_lock<holdfast::memory::mutex> const hold{orders};
}
