// SPDX-License-Identifier: MIT
#include <holdfast/holdfast.hpp>

#include <mutex>

std::mutex orders;
holdfast::leased_lock<std::mutex> hold{orders};
