# SPDX-License-Identifier: MIT
#
#   cmake -DSOURCES=… -DBUILD=… -DPREFIX=… -DGENERATOR=… -DOPTIONS=… -DSOVERSION=…
#     -DLIBRARIES=… -DARCHITECTURE=… -DPOINTER=… -P link_library.cmake
#
# Has both forms of the libholdfast in PREFIX linked by a library that is installed for others, and runs a program that
# finds that one. The shared one, in the folder LIBRARIES, stays loaded after dlclose.
include("${CMAKE_CURRENT_LIST_DIR}/library.cmake")

run(readelf -d "${LIBRARIES}/libholdfast.so")
if(NOT said MATCHES "NODELETE")
  message(FATAL_ERROR "libholdfast.so may be unloaded:\n${said}")
endif()

# It is not given to a machine of other pointers. This project has none but those that it says it has.
file(WRITE "${BUILD}/pointers/CMakeLists.txt" "cmake_minimum_required(VERSION 3.22)
project(pointers LANGUAGES NONE)
add_library(Threads::Threads INTERFACE IMPORTED)
set(CMAKE_LIBRARY_ARCHITECTURE ${ARCHITECTURE})
set(BUILD_SHARED_LIBS ON)
set(CMAKE_SIZEOF_VOID_P 2)
find_package(holdfast QUIET COMPONENTS compiled)
if(TARGET holdfast::compiled)
  message(FATAL_ERROR \"it is given to any machine\")
endif()
set(CMAKE_SIZEOF_VOID_P ${POINTER})
find_package(holdfast REQUIRED COMPONENTS compiled)\n")
run("${CMAKE_COMMAND}" -S "${BUILD}/pointers" -B "${BUILD}/pointers/build" -G "${GENERATOR}" ${OPTIONS}
  "-DCMAKE_PREFIX_PATH=${PREFIX}")

foreach(form IN ITEMS static shared)
  set(shared OFF)
  set(hidden "")
  if(form STREQUAL "shared")
    set(shared ON)
    set(hidden -DCMAKE_DISABLE_FIND_PACKAGE_hiredis=ON -DCMAKE_DISABLE_FIND_PACKAGE_zookeeper=ON)  # it needs neither
  endif()
  set(theirs "${BUILD}/${form}/prefix")
  build("${BUILD}/${form}/library" "${SOURCES}/library_of_others" "-DCMAKE_PREFIX_PATH=${PREFIX}"
    -DBUILD_SHARED_LIBS=${shared} ${hidden})
  run("${CMAKE_COMMAND}" --install "${BUILD}/${form}/library" --prefix "${theirs}")
  build("${BUILD}/${form}/program" "${SOURCES}/uses_library_of_others" "-DCMAKE_PREFIX_PATH=${PREFIX}"
    "-Dorders_DIR=${theirs}/lib/cmake/orders" -DBUILD_SHARED_LIBS=${shared}
    ${hidden})
  run("${BUILD}/${form}/program/use_orders")
  run(readelf -d "${BUILD}/${form}/program/use_orders")
  string(REGEX MATCH "libholdfast.so.[0-9.]*[0-9]" needed "${said}")
  if(shared AND NOT needed STREQUAL "libholdfast.so.${SOVERSION}")
    message(FATAL_ERROR "The program needs '${needed}', not libholdfast.so.${SOVERSION}:\n${said}")
  elseif(NOT shared AND needed)
    message(FATAL_ERROR "The program of the static library needs ${needed}:\n${said}")
  endif()
endforeach()
