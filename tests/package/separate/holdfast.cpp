// SPDX-License-Identifier: MIT
#include <holdfast/impl/redlock.hpp>
