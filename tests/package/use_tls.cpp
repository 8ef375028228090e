// SPDX-License-Identifier: MIT
//
// Makes a client that talks TLS, in a file that knows nothing of it. Making it does no I/O, so no server is needed.
#include <holdfast/redis.hpp>

#include <cstring>

int main()
{
    holdfast::redis::client redis{"rediss://redis.example"};
    holdfast::redis::mutex orders{redis, "orders/42"};
    try {
        holdfast::redis::client without{"rediss://redis.example", {.tls = {.ca_file = "no/such/file"}}};
    } catch (holdfast::error const& e) {
        return e.code() == holdfast::errc::misconfigured && std::strstr(e.what(), "no/such/file") ? 0 : 2;
    }
    return 1;
}
