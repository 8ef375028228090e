# SPDX-License-Identifier: MIT
#
# Finds standalone Asio, 1.22 and later, and Boost.Asio, of Boost 1.81 and later, and defines asio::asio: the folders of
# the headers of those that are there. One of them is enough.
#
# Sets asio_FOUND, asio_STANDALONE and asio_BOOST: whether the one and the other is there. The search can be steered with
# asio_INCLUDE_DIR and asio_BOOST_INCLUDE_DIR.

find_path(asio_INCLUDE_DIR NAMES asio.hpp)
find_path(asio_BOOST_INCLUDE_DIR NAMES boost/asio.hpp HINTS "${Boost_INCLUDE_DIR}" "${BOOST_ROOT}/include")
mark_as_advanced(asio_INCLUDE_DIR asio_BOOST_INCLUDE_DIR)

# asio_version_of(variable file macro): the number that the file defines the macro as; 0 if there is no such file.
function(asio_version_of variable file macro)
  set(${variable} 0 PARENT_SCOPE)
  if(EXISTS "${file}")
    file(STRINGS "${file}" line REGEX "^#define ${macro} +[0-9]+")
    if(line MATCHES "^#define ${macro} +([0-9]+)")
      set(${variable} "${CMAKE_MATCH_1}" PARENT_SCOPE)
    endif()
  endif()
endfunction()

asio_version_of(asio_number "${asio_INCLUDE_DIR}/asio/version.hpp" ASIO_VERSION)
asio_version_of(asio_boost_number "${asio_BOOST_INCLUDE_DIR}/boost/version.hpp" BOOST_VERSION)
set(asio_STANDALONE FALSE)
set(asio_BOOST FALSE)
set(asio_folders "")
if(asio_number GREATER_EQUAL 102200)
  set(asio_STANDALONE TRUE)
  list(APPEND asio_folders "${asio_INCLUDE_DIR}")
endif()
if(asio_boost_number GREATER_EQUAL 108100)
  set(asio_BOOST TRUE)
  list(APPEND asio_folders "${asio_BOOST_INCLUDE_DIR}")
endif()
list(REMOVE_DUPLICATES asio_folders)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(asio REQUIRED_VARS asio_folders)

if(asio_FOUND AND NOT TARGET asio::asio)
  add_library(asio::asio INTERFACE IMPORTED)
  set_target_properties(asio::asio PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${asio_folders}")
endif()
unset(asio_number)
unset(asio_boost_number)
unset(asio_folders)
