# SPDX-License-Identifier: MIT
#
# holdfast::compiled: what is behind the headers of the stores, compiled once, in the build of the project that links it,
# with CMAKE_CXX_FLAGS and the options of the folder that finds it. It has the stores whose components are there. Static,
# or shared with BUILD_SHARED_LIBS. The same file serves a build that has the sources and an installed package without
# libholdfast; cmake/library.cmake makes that of it, and says which form it wants.
if(NOT TARGET holdfast_compiled)
  set(holdfast_compiled_content "#include <holdfast/impl/make_store.hpp>\n#include <holdfast/impl/memory.hpp>\n")
  string(APPEND holdfast_compiled_content "#include <holdfast/impl/redlock.hpp>\n")
  string(APPEND holdfast_compiled_content "#ifdef HOLDFAST_WITH_ZOOKEEPER\n#include <holdfast/impl/zookeeper.hpp>\n#endif\n")
  file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/holdfast_compiled.cpp" CONTENT "${holdfast_compiled_content}")
  add_library(holdfast_compiled ${holdfast_compiled_form} EXCLUDE_FROM_ALL
    "${CMAKE_CURRENT_BINARY_DIR}/holdfast_compiled.cpp")
  # Nothing of a client library shows in the headers: only libholdfast is linked with it.
  target_link_libraries(holdfast_compiled PUBLIC holdfast::core PRIVATE holdfast::redlock)
  target_compile_definitions(holdfast_compiled PUBLIC HOLDFAST_COMPILED)
  set_target_properties(holdfast_compiled PROPERTIES POSITION_INDEPENDENT_CODE ON)
  # A shared library exports what its headers declare, in a project with CMAKE_CXX_VISIBILITY_PRESET=hidden, too.
  get_target_property(holdfast_compiled_type holdfast_compiled TYPE)
  if(holdfast_compiled_form OR holdfast_compiled_type STREQUAL "SHARED_LIBRARY")
    set_target_properties(holdfast_compiled PROPERTIES CXX_VISIBILITY_PRESET default VISIBILITY_INLINES_HIDDEN OFF)
  endif()
  # Its threads, and its handler of fork, are in use until the process ends: dlclose must not take it away.
  if(holdfast_compiled_type STREQUAL "SHARED_LIBRARY")
    target_link_options(holdfast_compiled PRIVATE "LINKER:-z,nodelete")
  endif()
  if(NOT holdfast_compiled_form)
    add_library(holdfast::compiled ALIAS holdfast_compiled)
  endif()
endif()

# Another folder of the project may have asked for less before.
set(holdfast_compiled_links holdfast::redlock)
if(TARGET holdfast::zookeeper)
  cmake_policy(SET CMP0079 NEW)
  list(APPEND holdfast_compiled_links holdfast::zookeeper)
  target_link_libraries(holdfast_compiled PRIVATE holdfast::zookeeper)
  target_compile_definitions(holdfast_compiled PRIVATE HOLDFAST_WITH_ZOOKEEPER)
endif()
