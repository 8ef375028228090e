// SPDX-License-Identifier: MIT
//
// A store of this file's, and one that libholdfast opens by its URL, in a library of others.
#include <orders.hpp>

#include <holdfast/make_store.hpp>
#include <holdfast/memory.hpp>

int main()
{
    holdfast::memory::store store;
    holdfast::memory::mutex held{store, "orders/42"};
    held.lock();
    bool const refused = !can_order(store);
    held.unlock();
    return refused && can_order(store) && can_order(holdfast::make_store("memory:orders")) ? 0 : 1;
}
