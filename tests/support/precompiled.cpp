// SPDX-License-Identifier: MIT
//
// Empty: CMake compiles a precompiled header only for a source that uses it.
