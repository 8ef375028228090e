// SPDX-License-Identifier: MIT
#include "support/locks.hpp"

template class holdfast::basic_mutex<holdfast::redis::fleet>;
template class holdfast::basic_mutex<holdfast::memory::backend>;
template class holdfast::detail::local_queue<holdfast::redis::fleet>;
template class holdfast::detail::local_queue<holdfast::memory::backend>;
template class holdfast::detail::domain<holdfast::redis::fleet>;
template class holdfast::detail::domain<holdfast::memory::backend>;
template class holdfast::redis::acquire_operation<holdfast::redis::socket_transport>;
template class holdfast::redis::extend_operation<holdfast::redis::socket_transport>;
template class holdfast::redis::release_operation<holdfast::redis::socket_transport>;
#ifdef HOLDFAST_TEST_ZOOKEEPER
template class holdfast::basic_mutex<holdfast::zookeeper::backend>;
template class holdfast::detail::local_queue<holdfast::zookeeper::backend>;
template class holdfast::detail::domain<holdfast::zookeeper::backend>;
#endif
