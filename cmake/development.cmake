# SPDX-License-Identifier: MIT
#
# What holdfast's own tests, examples and benchmarks are built with. Nothing here is exported or reaches
# a project that uses holdfast.

# Warnings are errors in our own code, and in the headers as our own code includes them.
add_library(holdfast_warnings INTERFACE)
target_compile_options(holdfast_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Werror
  -Wcast-align -Wconversion -Wextra-semi -Wold-style-cast -Woverloaded-virtual
  -Wshadow -Wsign-conversion -Wundef -Wunused -Wvla
  $<$<CXX_COMPILER_ID:GNU>:-Wduplicated-branches -Wduplicated-cond>
  # GCC's ThreadSanitizer cannot see a fence and says so for the standard library's own.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)

# A second build of the same file is free where ccache is; the slack is what it asks for to work with
# precompiled headers.
find_program(HOLDFAST_CCACHE ccache)
mark_as_advanced(HOLDFAST_CCACHE)
if(HOLDFAST_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER
    "${CMAKE_COMMAND}" -E env "CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime"
    "${HOLDFAST_CCACHE}")
endif()
set(CMAKE_CXX_EXTENSIONS OFF)

# Files of one program use the same templates. Together they take half of the time or less, but each change all of it.
option(HOLDFAST_UNITY "Compile files of tests and examples together: for a build from nothing" OFF)
if(HOLDFAST_UNITY AND HOLDFAST_BUILD_TESTS)
  # GCC looks for what it no longer needs when it has half a gigabyte, not before: a tenth of its time. Not for examples, which are built on
  # small machines, too.
  add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=524288>)
endif()
