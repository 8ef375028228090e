// SPDX-License-Identifier: MIT
#include "orders.hpp"

bool can_order(holdfast::store const& store)
{
    holdfast::mutex orders{store, "orders/42"};
    if (!orders.try_lock()) return false;
    orders.unlock();
    return true;
}
