// SPDX-License-Identifier: MIT
#include <holdfast/memory.hpp>

[[gnu::visibility("default")]] int brought_by_a_shared_library() { return 2; }
