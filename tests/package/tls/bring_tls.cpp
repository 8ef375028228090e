// SPDX-License-Identifier: MIT
#include <holdfast/tls.hpp>
