// SPDX-License-Identifier: MIT
//
// Opens a store by its URL, which the compiled library has to have. That does no I/O, so no server is needed.
#include <holdfast/make_store.hpp>
#include <holdfast/mutex.hpp>

int main()
{
    auto const store = holdfast::make_store("zookeeper://127.0.0.1:2181");
    holdfast::mutex orders{store, "/locks/orders"};
}
