// SPDX-License-Identifier: MIT
#include <holdfast/impl/memory.hpp>
