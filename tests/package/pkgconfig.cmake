# SPDX-License-Identifier: MIT
#
#   cmake -DPKG_CONFIG=… -DCXX=… -DFLAGS=… -DFOLDERS=… -DSOURCES=… -DBUILD=… -DCOMPONENTS=… -DVERSION=… -P pkgconfig.cmake
#
# What the files of pkg-config in FOLDERS say is enough to build programs with: an empty one is linked for each of
# COMPONENTS; a real one is built and run for the headers alone, and for libholdfast.
cmake_minimum_required(VERSION 3.22)
list(JOIN FOLDERS ":" folders)
set(ENV{PKG_CONFIG_PATH} "${folders}")
separate_arguments(FLAGS UNIX_COMMAND "${FLAGS}")
file(REMOVE_RECURSE "${BUILD}")
file(MAKE_DIRECTORY "${BUILD}")

function(run)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY "${BUILD}" RESULT_VARIABLE status
    OUTPUT_VARIABLE said ERROR_VARIABLE said OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGN} ended with ${status}:\n${said}")
  endif()
  set(said "${said}" PARENT_SCOPE)
endfunction()

# compile(source arguments of pkg-config…): with no other folder of holdfast's, and runs it
function(compile source)
  run("${PKG_CONFIG}" --cflags --libs ${ARGN})
  separate_arguments(flags UNIX_COMMAND "${said}")
  run("${CXX}" -std=c++20 ${FLAGS} "${source}" ${flags} -o program)
  run("${CMAKE_COMMAND}" -E env "LD_LIBRARY_PATH=${LIBRARIES}" ./program)
endfunction()

file(WRITE "${BUILD}/empty.cpp" "int main() {}\n")
foreach(component IN LISTS COMPONENTS)
  run("${PKG_CONFIG}" --validate "holdfast-${component}")
  run("${PKG_CONFIG}" --modversion "holdfast-${component}")
  if(NOT said STREQUAL VERSION)
    message(FATAL_ERROR "holdfast-${component} is of version ${said}, not ${VERSION}")
  endif()
  compile(empty.cpp "holdfast-${component}")
endforeach()

compile("${SOURCES}/use_redis.cpp" holdfast-redis)
compile("${SOURCES}/use_redis.cpp" holdfast-compiled)
