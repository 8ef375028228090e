# SPDX-License-Identifier: MIT
#
# Finds hiredis and defines hiredis::hiredis, for use as `#include <hiredis/hiredis.h>`.
#
# hiredis 1.x brings a CMake package of that name, 0.14 (Debian 12) none that can be used, and the
# pkg-config file of either points inside the hiredis/ folder: hence first the package, then a search.
#
# If a target of that name that is there already, or that the package defines, has include folders, or links targets
# that have some, hiredis/hiredis.h has to be in one of them. Otherwise the compiler takes the header of another hiredis,
# of the system: the structures of 0.14 and of 1.x have different sizes.
#
# Sets hiredis_FOUND and hiredis_VERSION, and hiredis_NOT_FOUND_MESSAGE if there is a target that cannot be used. The
# search can be steered with hiredis_INCLUDE_DIR and hiredis_LIBRARY.

if(NOT TARGET hiredis::hiredis AND NOT hiredis_INCLUDE_DIR)
  find_package(hiredis CONFIG QUIET)
endif()
unset(hiredis_NOT_FOUND_MESSAGE)
unset(hiredis_folder)
if(TARGET hiredis::hiredis)
  set(hiredis_needs hiredis_folder)
  get_target_property(hiredis_target hiredis::hiredis ALIASED_TARGET)
  if(NOT hiredis_target)
    set(hiredis_target hiredis::hiredis)
  endif()
  get_target_property(hiredis_imported ${hiredis_target} IMPORTED)
  get_target_property(hiredis_linked ${hiredis_target} INTERFACE_LINK_LIBRARIES)
  unset(hiredis_folders)
  foreach(one IN LISTS hiredis_target hiredis_linked)
    if(TARGET "${one}")
      get_target_property(hiredis_more "${one}" INTERFACE_INCLUDE_DIRECTORIES)
      if(hiredis_more)
        list(APPEND hiredis_folders ${hiredis_more})
      endif()
    endif()
  endforeach()
  if(NOT hiredis_folders)  # those of the compiler
    unset(hiredis_more)
    find_path(hiredis_more NAMES hiredis/hiredis.h
      PATHS ${CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES} ${CMAKE_C_IMPLICIT_INCLUDE_DIRECTORIES} NO_DEFAULT_PATH NO_CACHE)
    set(hiredis_folders "${hiredis_more}")
  endif()
  string(REGEX REPLACE "\\$<INSTALL_INTERFACE:[^>]*>|\\$<BUILD_INTERFACE:|\\$<\\$<CONFIG:[^>]*>:|>" ""
    hiredis_folders "${hiredis_folders}")
  foreach(folder IN LISTS hiredis_folders)
    if(EXISTS "${folder}/hiredis/hiredis.h")
      set(hiredis_folder "${folder}")
      break()
    elseif(hiredis_imported AND EXISTS "${folder}/include/hiredis/hiredis.h")
      # The package of 1.0 to 1.2 says where it is installed, not where its headers are.
      set(hiredis_folder "${folder}/include")
      set_property(TARGET ${hiredis_target} APPEND PROPERTY INTERFACE_INCLUDE_DIRECTORIES "${hiredis_folder}")
      break()
    endif()
  endforeach()
  if(NOT hiredis_folder)
    set(hiredis_NOT_FOUND_MESSAGE "there is a target hiredis::hiredis, but none of its include folders has \
hiredis/hiredis.h. Give it the folder above hiredis/ with target_include_directories")
  endif()
else()
  set(hiredis_needs hiredis_LIBRARY hiredis_INCLUDE_DIR)
  find_path(hiredis_INCLUDE_DIR NAMES hiredis/hiredis.h)
  find_library(hiredis_LIBRARY NAMES hiredis)
  mark_as_advanced(hiredis_INCLUDE_DIR hiredis_LIBRARY)
  set(hiredis_folder "${hiredis_INCLUDE_DIR}")
endif()

unset(hiredis_VERSION)
if(hiredis_folder)
  foreach(part IN ITEMS MAJOR MINOR PATCH)
    file(STRINGS "${hiredis_folder}/hiredis/hiredis.h" line REGEX "^#define HIREDIS_${part} +[0-9]+")
    if(line MATCHES "([0-9]+)$")
      list(APPEND hiredis_VERSION "${CMAKE_MATCH_1}")
    endif()
  endforeach()
  list(JOIN hiredis_VERSION "." hiredis_VERSION)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(hiredis
  REQUIRED_VARS ${hiredis_needs}
  VERSION_VAR hiredis_VERSION
  REASON_FAILURE_MESSAGE "${hiredis_NOT_FOUND_MESSAGE}")

if(hiredis_FOUND AND NOT TARGET hiredis::hiredis)
  add_library(hiredis::hiredis UNKNOWN IMPORTED)
  set_target_properties(hiredis::hiredis PROPERTIES
    IMPORTED_LOCATION "${hiredis_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${hiredis_INCLUDE_DIR}")
endif()
unset(hiredis_folder)
unset(hiredis_folders)
unset(hiredis_imported)
unset(hiredis_linked)
unset(hiredis_more)
unset(hiredis_needs)
unset(hiredis_target)
