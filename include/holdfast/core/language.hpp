// SPDX-License-Identifier: MIT
#pragma once

// What the language and its library must have: if it is missing, one line says so, in place of many errors. Every
// header that a user includes includes this one first. Including a file that does not exist ends the compilation; an
// #error does not.
#if __cplusplus < 202002L
#error "holdfast needs C++20: compile with -std=c++20 or later (in CMake a target that links one of holdfast's is)"
#include "see the error above"
#endif
#ifndef __cpp_exceptions
#error "holdfast needs exceptions: compile without -fno-exceptions"
#include "see the error above"
#endif

#include <version>
#ifndef __cpp_lib_jthread
#ifdef _LIBCPP_VERSION
#error                                                                                                                 \
    "holdfast needs std::stop_token, which libc++ has from 18 on: compile and link with -fexperimental-library (not needed from 20 on)"
#else
#error "holdfast needs std::stop_token, which this standard library does not have: GCC's has it from 10 on"
#endif
#include "see the error above"
#endif
