// SPDX-License-Identifier: MIT
//
// Makes a client and a lock. Making them does no I/O, so no server is needed. One that is to talk TLS is refused: no
// file of the program brings it.
#include <holdfast/redis.hpp>

#include <cstring>

int main()
{
    holdfast::redis::client redis{"redis://127.0.0.1:6379"};
    holdfast::redis::mutex orders{redis, "orders/42"};
    try {
        holdfast::redis::client secured{"rediss://redis.example"};
    } catch (holdfast::error const& e) {
        return e.code() == holdfast::errc::misconfigured && std::strstr(e.what(), "holdfast/tls.hpp") ? 0 : 2;
    }
    return 1;
}
