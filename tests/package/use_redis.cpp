// SPDX-License-Identifier: MIT
//
// Makes a client and a lock. Making them does no I/O, so no server is needed.
#include <holdfast/redis.hpp>

int main()
{
    holdfast::redis::client redis{"redis://127.0.0.1:6379"};
    holdfast::redis::mutex orders{redis, "orders/42"};
}
