// SPDX-License-Identifier: MIT
//
// Makes a client that talks TLS, and a lock. Making them does no I/O, so no server is needed.
#include <holdfast/redis.hpp>
#include <holdfast/tls.hpp>

int main()
{
    holdfast::redis::client redis{"rediss://redis.example"};
    holdfast::redis::mutex orders{redis, "orders/42"};
    return orders.name() == "orders/42" ? 0 : 1;
}
