# SPDX-License-Identifier: MIT
#
# Finds the multi-threaded C client of ZooKeeper, which ships no CMake package, and defines
# zookeeper::zookeeper_mt, for use as `#include <zookeeper/zookeeper.h>`, or as `#include <zookeeper.h>` if only that is
# there: Conan's package has the headers so, and a library in two parts. vcpkg's port has a package of another name,
# which is taken first.
#
# Sets zookeeper_FOUND and zookeeper_VERSION; the search can be steered with zookeeper_INCLUDE_DIR and
# zookeeper_LIBRARY.

if(NOT TARGET zookeeper::zookeeper_mt AND NOT zookeeper_LIBRARY)
  find_package(unofficial-zookeeper CONFIG QUIET)
  if(TARGET unofficial::zookeeper::zookeeper)
    set(zookeeper_LIBRARY unofficial::zookeeper::zookeeper)
  endif()
endif()
find_path(zookeeper_INCLUDE_DIR NAMES zookeeper/zookeeper.h zookeeper.h)
find_library(zookeeper_LIBRARY NAMES zookeeper_mt zookeeper)
mark_as_advanced(zookeeper_INCLUDE_DIR zookeeper_LIBRARY)
set(zookeeper_folder "${zookeeper_INCLUDE_DIR}/zookeeper")
unset(zookeeper_parts)
if(zookeeper_INCLUDE_DIR AND NOT EXISTS "${zookeeper_folder}/zookeeper.h")
  set(zookeeper_folder "${zookeeper_INCLUDE_DIR}")
  find_library(zookeeper_HASHTABLE_LIBRARY NAMES hashtable)
  mark_as_advanced(zookeeper_HASHTABLE_LIBRARY)
  if(zookeeper_HASHTABLE_LIBRARY)
    set(zookeeper_parts "${zookeeper_HASHTABLE_LIBRARY}")
  endif()
endif()

# Since 3.7 one string in the header; before that three numbers, which are too old for us anyway.
unset(zookeeper_VERSION)
if(EXISTS "${zookeeper_folder}/zookeeper_version.h")
  file(STRINGS "${zookeeper_folder}/zookeeper_version.h" line REGEX "^#define ZOO_VERSION +\"")
  if(line MATCHES "\"([0-9.]+)\"")
    set(zookeeper_VERSION "${CMAKE_MATCH_1}")
  endif()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(zookeeper
  REQUIRED_VARS zookeeper_LIBRARY zookeeper_INCLUDE_DIR
  VERSION_VAR zookeeper_VERSION)

if(zookeeper_FOUND AND TARGET "${zookeeper_LIBRARY}" AND NOT TARGET zookeeper::zookeeper_mt)
  add_library(zookeeper::zookeeper_mt INTERFACE IMPORTED)
  set_target_properties(zookeeper::zookeeper_mt PROPERTIES
    INTERFACE_LINK_LIBRARIES "${zookeeper_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${zookeeper_INCLUDE_DIR}"
    INTERFACE_COMPILE_DEFINITIONS THREADED)
elseif(zookeeper_FOUND AND NOT TARGET zookeeper::zookeeper_mt)
  add_library(zookeeper::zookeeper_mt UNKNOWN IMPORTED)
  # The header declares the calls that wait only where THREADED is defined.
  set_target_properties(zookeeper::zookeeper_mt PROPERTIES
    IMPORTED_LOCATION "${zookeeper_LIBRARY}"
    INTERFACE_LINK_LIBRARIES "${zookeeper_parts}"
    INTERFACE_INCLUDE_DIRECTORIES "${zookeeper_INCLUDE_DIR}"
    INTERFACE_COMPILE_DEFINITIONS THREADED)
endif()
unset(zookeeper_folder)
unset(zookeeper_parts)
