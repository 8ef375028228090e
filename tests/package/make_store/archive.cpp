// SPDX-License-Identifier: MIT
#include <holdfast/redis.hpp>

int brought_by_an_archive() { return 1; }
