// SPDX-License-Identifier: MIT
//
// The headers of the standard library that <holdfast/mutex.hpp> names, for what it says itself.
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <system_error>

void guarded(std::mutex& orders, void (*section)())
{
    std::scoped_lock hold{orders};
    section();
}
