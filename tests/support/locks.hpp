// SPDX-License-Identifier: MIT
//
// Every lock there is, compiled once for all tests that use one (locks.cpp).
#pragma once

#include <holdfast/memory.hpp>
#include <holdfast/redis.hpp>
#include <holdfast/redlock.hpp>

extern template class holdfast::basic_mutex<holdfast::memory::backend>;
extern template class holdfast::detail::local_queue<holdfast::memory::backend>;
extern template class holdfast::detail::domain<holdfast::memory::backend>;
