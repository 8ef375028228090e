# SPDX-License-Identifier: MIT
#
# Finds hiredis and defines hiredis::hiredis, for use as `#include <hiredis/hiredis.h>`.
#
# hiredis 1.x brings a CMake package of that name, 0.14 (Debian 12) none that can be used, and the
# pkg-config file of either points inside the hiredis/ folder: hence first the package, then a search.
#
# Sets hiredis_FOUND and hiredis_VERSION; the search can be steered with hiredis_INCLUDE_DIR and
# hiredis_LIBRARY.

if(NOT TARGET hiredis::hiredis AND NOT hiredis_INCLUDE_DIR)
  find_package(hiredis CONFIG QUIET)
endif()
if(TARGET hiredis::hiredis)
  set(hiredis_TARGET hiredis::hiredis)
  include(FindPackageHandleStandardArgs)
  find_package_handle_standard_args(hiredis REQUIRED_VARS hiredis_TARGET VERSION_VAR hiredis_VERSION)
  return()
endif()

find_path(hiredis_INCLUDE_DIR NAMES hiredis/hiredis.h)
find_library(hiredis_LIBRARY NAMES hiredis)
mark_as_advanced(hiredis_INCLUDE_DIR hiredis_LIBRARY)

unset(hiredis_VERSION)
if(hiredis_INCLUDE_DIR)
  foreach(part IN ITEMS MAJOR MINOR PATCH)
    file(STRINGS "${hiredis_INCLUDE_DIR}/hiredis/hiredis.h" line REGEX "^#define HIREDIS_${part} +[0-9]+")
    if(line MATCHES "([0-9]+)$")
      list(APPEND hiredis_VERSION "${CMAKE_MATCH_1}")
    endif()
  endforeach()
  list(JOIN hiredis_VERSION "." hiredis_VERSION)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(hiredis
  REQUIRED_VARS hiredis_LIBRARY hiredis_INCLUDE_DIR
  VERSION_VAR hiredis_VERSION)

if(hiredis_FOUND)
  add_library(hiredis::hiredis UNKNOWN IMPORTED)
  set_target_properties(hiredis::hiredis PROPERTIES
    IMPORTED_LOCATION "${hiredis_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${hiredis_INCLUDE_DIR}")
endif()
