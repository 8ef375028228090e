// SPDX-License-Identifier: MIT
//
// What a program does with the library, compiled with a standard or a library that is too old.
#include HOLDFAST_HEADER

#include <mutex>

holdfast::redis::client redis{"redis://127.0.0.1:6379"};
holdfast::redis::mutex orders{redis, "orders/42", {.ttl = std::chrono::seconds{10}}};

int main()
{
    std::scoped_lock const hold{orders};
    if (holdfast::leased_lock const leased{orders, std::chrono::seconds{1}})
        return static_cast<int>(leased.fencing_token());
}
