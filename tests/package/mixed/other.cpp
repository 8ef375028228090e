// SPDX-License-Identifier: MIT
#include <holdfast/memory.hpp>

#ifdef PASSES_A_LOCK
bool taken(holdfast::mutex& one) { return !one.try_lock(); }
#else
bool taken()
{
    holdfast::memory::store store;
    holdfast::memory::mutex one{store, "orders"};
    return one.try_lock();
}
#endif
