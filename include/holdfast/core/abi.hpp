// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/language.hpp>

// Everything is in a namespace of this name inside `holdfast`. The name differs for each version, and for each macro
// that changes what a declaration means. Files compiled with different names do not see each other's types: they fail
// to link if they exchange them, and work side by side if not.
//
// With HOLDFAST_COMPILED, which the CMake target holdfast::compiled defines for its users, the stores are compiled
// once, in that library.
#ifdef HOLDFAST_COMPILED
#define HOLDFAST_ABI v0_2_compiled
#define HOLDFAST_INLINE
#else
#define HOLDFAST_ABI v0_2
#define HOLDFAST_INLINE inline
#endif
