// SPDX-License-Identifier: MIT
//
// With `discarded`, what is to be warned of, each in a file of its own as the compiler has it; without, there is nothing to warn of.
#include <holdfast/memory.hpp>

#include <chrono>

using namespace std::chrono_literals;

#ifdef discarded
void send(holdfast::memory::mutex& orders)
{
#line 1 "discarded_guard"
    holdfast::leased_lock{orders};
#line 1 "discarded_timed_guard"
    holdfast::leased_lock<holdfast::memory::mutex>{orders, 1s};
#line 1 "discarded_with_lock"
    holdfast::with_lock(orders, 1s, [] { return 7; });
#line 1 "discarded_with_lock_of_void"
    holdfast::with_lock(orders, 1s, [] {});
}
#endif

#line 1 "used"
void ship(holdfast::memory::mutex& orders)
{
    holdfast::with_lock(orders, [] { return 7; });
    holdfast::leased_lock const hold{orders};
    if (!holdfast::with_lock(orders, 1s, [] {})) return;
}
