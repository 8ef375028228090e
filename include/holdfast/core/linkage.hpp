// SPDX-License-Identifier: MIT
#pragma once

// Where a program defines HOLDFAST_SEPARATE_COMPILATION for all its files, the definitions behind <holdfast/redis.hpp> and
// <holdfast/redlock.hpp> are compiled once: in the one file that includes <holdfast/source/redis.hpp> or <holdfast/source/redlock.hpp>.
// Otherwise they are inline, as everything else.
#ifdef HOLDFAST_SEPARATE_COMPILATION
#define HOLDFAST_INLINE
#else
#define HOLDFAST_INLINE inline
#endif
