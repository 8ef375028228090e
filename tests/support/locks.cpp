// SPDX-License-Identifier: MIT
#include "support/locks.hpp"

#include <holdfast/source/redlock.hpp>

template class holdfast::basic_mutex<holdfast::memory::backend>;
template class holdfast::detail::local_queue<holdfast::memory::backend>;
template class holdfast::detail::domain<holdfast::memory::backend>;
