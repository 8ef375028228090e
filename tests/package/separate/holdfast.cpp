// SPDX-License-Identifier: MIT
#include <holdfast/source/redlock.hpp>
