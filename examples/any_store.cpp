// SPDX-License-Identifier: MIT
//
// The store is a line of the configuration. The code that locks names none of them.
//
//   any_store [URL]      memory:, redis://127.0.0.1:6379, redlock+redis://10.0.0.1,10.0.0.2,10.0.0.3, …
#include <holdfast/make_store.hpp>
#include <holdfast/memory.hpp>  // each header makes the schemes of its store known
#include <holdfast/redis.hpp>
#include <holdfast/redlock.hpp>

#include <chrono>
#include <exception>
#include <iostream>
#include <mutex>

namespace {

// As a service would be: it is given a store, and includes <holdfast/mutex.hpp> only.
void serve(holdfast::store const& servers)
{
    holdfast::mutex orders{servers, "orders/42", {.ttl = std::chrono::seconds{10}}};
    std::scoped_lock const hold{orders};
    std::cout << "orders/42 is mine, with fencing token " << orders.lease().fencing_token() << '\n';
}

}  // namespace

int main(int argc, char** argv)
try {
    serve(holdfast::make_store(argc > 1 ? argv[1] : "memory:"));
} catch (std::exception const& e) {  // never shows the URL, which may have a password
    std::cerr << e.what() << '\n';
    return 1;
}
