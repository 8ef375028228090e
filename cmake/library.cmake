# SPDX-License-Identifier: MIT
#
# HOLDFAST_BUILD_LIBRARY: holdfast::compiled is compiled here and is installed, as libholdfast.a and as libholdfast.so.
# The SONAME has the minor version, as the namespace of the names has (core/abi.hpp). Projects that find it are given the static one, or with
# BUILD_SHARED_LIBS the shared one. A library that is installed for others may link either.
if(NOT "compiled" IN_LIST holdfast_wanted)
  message(FATAL_ERROR "holdfast: HOLDFAST_BUILD_LIBRARY needs the component compiled, and so hiredis. "
    "On Debian and Ubuntu: apt-get install libhiredis-dev")
endif()

set(holdfast_compiled_form STATIC)
include("${CMAKE_CURRENT_LIST_DIR}/holdfast-compiled.cmake")
set_target_properties(holdfast_compiled PROPERTIES OUTPUT_NAME holdfast EXPORT_NAME compiled EXCLUDE_FROM_ALL OFF)

# Of the same object files.
add_library(holdfast_compiled_shared SHARED $<TARGET_OBJECTS:holdfast_compiled>)
target_link_libraries(holdfast_compiled_shared PUBLIC holdfast::core PRIVATE ${holdfast_compiled_links})
target_link_options(holdfast_compiled_shared PRIVATE "LINKER:-z,nodelete")
target_compile_definitions(holdfast_compiled_shared PUBLIC HOLDFAST_COMPILED)
set_target_properties(holdfast_compiled_shared PROPERTIES
  OUTPUT_NAME holdfast
  EXPORT_NAME compiled
  LINKER_LANGUAGE CXX
  VERSION "${PROJECT_VERSION}"
  SOVERSION "${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}")

if(BUILD_SHARED_LIBS)
  add_library(holdfast::compiled ALIAS holdfast_compiled_shared)
else()
  add_library(holdfast::compiled ALIAS holdfast_compiled)
endif()
