# SPDX-License-Identifier: MIT
#
#   cmake -DSTEP=install|link -DSOURCE=… -DSOURCES=… -DBUILD=… -DPREFIX=… -DGENERATOR=… -DOPTIONS=… -DSOVERSION=…
#     -P libholdfast.cmake
#
# install: builds libholdfast and installs it in PREFIX. link: has both forms of it linked by a library that is installed
# for others, and runs a program that finds that one.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE said ERROR_VARIABLE said)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGN} ended with ${status}:\n${said}")
  endif()
  set(said "${said}" PARENT_SCOPE)
endfunction()

# build(folder source options…)
function(build folder source)
  file(REMOVE_RECURSE "${folder}")
  run("${CMAKE_COMMAND}" -S "${source}" -B "${folder}" -G "${GENERATOR}" ${OPTIONS} ${ARGN})
  run("${CMAKE_COMMAND}" --build "${folder}")
endfunction()

if(STEP STREQUAL "install")
  build("${BUILD}" "${SOURCE}" -DHOLDFAST_BUILD_LIBRARY=ON -DHOLDFAST_BUILD_TESTS=OFF -DHOLDFAST_BUILD_EXAMPLES=OFF)
  file(REMOVE_RECURSE "${PREFIX}")
  run("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${PREFIX}")
  return()
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
