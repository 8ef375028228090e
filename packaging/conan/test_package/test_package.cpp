// SPDX-License-Identifier: MIT
//
// Makes a store of what the package was made with, and a lock. Making them does no I/O, so no server is needed.
#ifdef USE_REDIS
#include <holdfast/redis.hpp>
#else
#include <holdfast/memory.hpp>
#endif
#ifdef USE_TLS
#include <holdfast/tls.hpp>
#endif

int main()
{
#if defined USE_REDIS && defined USE_TLS
    holdfast::redis::client store{"rediss://redis.example"};
#elif defined USE_REDIS
    holdfast::redis::client store{"redis://redis.example"};
#else
    holdfast::memory::store store;
#endif
    holdfast::mutex orders{store, "orders/42"};
    return orders.name() == "orders/42" ? 0 : 1;
}
