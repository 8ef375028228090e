// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/mutex.hpp>

/// Returns: whether the lock `orders/42` of the store could be taken; it is given back.
bool can_order(holdfast::store const& store);
