// SPDX-License-Identifier: MIT
#include <holdfast/memory.hpp>

#include <system_error>

struct lock_without_extend : holdfast::memory::mutex {
    using mutex::mutex;
    void extend(std::chrono::milliseconds, std::error_code&) = delete;
};

void ship(lock_without_extend& orders)
{
    holdfast::leased_lock<lock_without_extend> hold{orders};
}
