// SPDX-License-Identifier: MIT
//
// One of these is compiled that is asked for; none, and there is nothing to warn of.
#include <holdfast/memory.hpp>

#include <chrono>

using namespace std::chrono_literals;

void ship(holdfast::memory::mutex& orders)
{
#ifdef discarded_guard
    holdfast::leased_lock{orders};
#endif
#ifdef discarded_timed_guard
    holdfast::leased_lock<holdfast::memory::mutex>{orders, 1s};
#endif
#ifdef discarded_with_lock
    holdfast::with_lock(orders, 1s, [] { return 7; });
#endif
#ifdef discarded_with_lock_of_void
    holdfast::with_lock(orders, 1s, [] {});
#endif
    holdfast::with_lock(orders, [] { return 7; });
    holdfast::leased_lock const hold{orders};
    if (!holdfast::with_lock(orders, 1s, [] {})) return;
}
