// SPDX-License-Identifier: MIT
#include "support/locks.hpp"

#include <holdfast/source/redlock.hpp>
#ifdef HOLDFAST_TEST_TLS
#include <holdfast/tls.hpp>
#endif

template class holdfast::basic_mutex<holdfast::memory::backend>;
template class holdfast::detail::local_queue<holdfast::memory::backend>;
template class holdfast::detail::domain<holdfast::memory::backend>;
#ifdef HOLDFAST_TEST_ZOOKEEPER
template class holdfast::basic_mutex<holdfast::zookeeper::backend>;
template class holdfast::detail::local_queue<holdfast::zookeeper::backend>;
template class holdfast::detail::domain<holdfast::zookeeper::backend>;
#endif
