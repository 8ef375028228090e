// SPDX-License-Identifier: MIT
#include "support/locks.hpp"
