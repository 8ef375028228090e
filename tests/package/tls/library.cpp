// SPDX-License-Identifier: MIT
#include <holdfast/tls.hpp>

[[gnu::visibility("default")]] int brought_elsewhere() { return 1; }
