# SPDX-License-Identifier: MIT
#
# holdfast::compiled: what is behind <holdfast/redis.hpp> and <holdfast/redlock.hpp>, compiled once, in the build of whoever links it, with
# CMAKE_CXX_FLAGS and the options of the folder that finds it. The same file serves a build that has the sources and an installed package.
if(NOT TARGET holdfast_compiled)
  file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/holdfast_compiled.cpp" CONTENT "#include <holdfast/source/redlock.hpp>\n")
  add_library(holdfast_compiled STATIC EXCLUDE_FROM_ALL "${CMAKE_CURRENT_BINARY_DIR}/holdfast_compiled.cpp")
  target_link_libraries(holdfast_compiled PUBLIC holdfast::redlock)
  target_compile_definitions(holdfast_compiled PUBLIC HOLDFAST_SEPARATE_COMPILATION)
  set_target_properties(holdfast_compiled PROPERTIES POSITION_INDEPENDENT_CODE ON)
  add_library(holdfast::compiled ALIAS holdfast_compiled)
endif()
