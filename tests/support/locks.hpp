// SPDX-License-Identifier: MIT
//
// Every lock there is, compiled once for all tests that use one (locks.cpp).
#pragma once

#include <holdfast/memory.hpp>
#include <holdfast/redis.hpp>
#include <holdfast/redlock.hpp>
#ifdef HOLDFAST_TEST_ZOOKEEPER
#include <holdfast/zookeeper.hpp>
#endif

extern template class holdfast::basic_mutex<holdfast::memory::backend>;
extern template class holdfast::detail::local_queue<holdfast::memory::backend>;
extern template class holdfast::detail::domain<holdfast::memory::backend>;
#ifdef HOLDFAST_TEST_ZOOKEEPER
extern template class holdfast::basic_mutex<holdfast::zookeeper::backend>;
extern template class holdfast::detail::local_queue<holdfast::zookeeper::backend>;
extern template class holdfast::detail::domain<holdfast::zookeeper::backend>;
#endif
