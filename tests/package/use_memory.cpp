// SPDX-License-Identifier: MIT
//
// Locks and unlocks within the process: no server is needed.
#include <holdfast/memory.hpp>

#include <mutex>

int main()
{
    holdfast::memory::store store;
    holdfast::memory::mutex orders{store, "orders/42"};
    {
        std::scoped_lock hold{orders};
    }
    return orders.try_lock() ? (orders.unlock(), 0) : 1;
}
