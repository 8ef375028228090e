# SPDX-License-Identifier: MIT
#
#   cmake -DSOURCES=… -DBUILD=… -DPREFIX=… -DGENERATOR=… -DOPTIONS=… -DSOVERSION=…
#     -DLIBRARIES=… -P link_library.cmake
#
# Has both forms of the libholdfast in PREFIX linked by a library that is installed for others, and runs a program that
# finds that one. The shared one, in the folder LIBRARIES, stays loaded after dlclose.
include("${CMAKE_CURRENT_LIST_DIR}/library.cmake")

run(readelf -d "${LIBRARIES}/libholdfast.so")
if(NOT said MATCHES "NODELETE")
  message(FATAL_ERROR "libholdfast.so may be unloaded:\n${said}")
endif()

foreach(form IN ITEMS static shared)
  set(shared OFF)
  if(form STREQUAL "shared")
    set(shared ON)
  endif()
  set(theirs "${BUILD}/${form}/prefix")
  build("${BUILD}/${form}/library" "${SOURCES}/library_of_others" "-DCMAKE_PREFIX_PATH=${PREFIX}"
    -DBUILD_SHARED_LIBS=${shared})
  run("${CMAKE_COMMAND}" --install "${BUILD}/${form}/library" --prefix "${theirs}")
  build("${BUILD}/${form}/program" "${SOURCES}/uses_library_of_others" "-DCMAKE_PREFIX_PATH=${PREFIX}"
    "-Dorders_DIR=${theirs}/lib/cmake/orders" -DBUILD_SHARED_LIBS=${shared})
  run("${BUILD}/${form}/program/use_orders")
  run(readelf -d "${BUILD}/${form}/program/use_orders")
  string(REGEX MATCH "libholdfast.so.[0-9.]*[0-9]" needed "${said}")
  if(shared AND NOT needed STREQUAL "libholdfast.so.${SOVERSION}")
    message(FATAL_ERROR "The program needs '${needed}', not libholdfast.so.${SOVERSION}:\n${said}")
  elseif(NOT shared AND needed)
    message(FATAL_ERROR "The program of the static library needs ${needed}:\n${said}")
  endif()
endforeach()
