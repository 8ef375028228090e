// SPDX-License-Identifier: MIT
#pragma once

/// The version of the library; CMake reads it from here.
#define HOLDFAST_VERSION_MAJOR 0
#define HOLDFAST_VERSION_MINOR 2
#define HOLDFAST_VERSION_PATCH 0
