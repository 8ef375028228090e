// SPDX-License-Identifier: MIT
//
// One file of a program of two forms: this is compiled as headers alone, the other one with HOLDFAST_COMPILED.
#include <holdfast/memory.hpp>

#ifdef PASSES_A_LOCK
bool taken(holdfast::mutex& one);
#else
bool taken();
#endif

int main()
{
    holdfast::memory::store store;
    holdfast::memory::mutex one{store, "orders"};
    one.lock();
#ifdef PASSES_A_LOCK
    return taken(one) ? 0 : 1;
#else
    return taken() ? 0 : 1;
#endif
}
