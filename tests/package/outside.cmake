# SPDX-License-Identifier: MIT
#
# Configures, builds and runs one outside project from nothing; see CMakeLists.txt here.
#   cmake -DSOURCE=… -DBUILD=… -DGENERATOR=… -DOPTIONS=… -DRUN=… -DREFUSED=… -P outside.cmake

file(REMOVE_RECURSE "${BUILD}")
execute_process(
  COMMAND "${CMAKE_COMMAND}" -S "${SOURCE}" -B "${BUILD}" -G "${GENERATOR}" ${OPTIONS}
  RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)

if(REFUSED)
  # CMake breaks the lines of its messages where it likes.
  string(REGEX REPLACE "[ \n]+" " " words "${output}")
  string(FIND "${words}" "${REFUSED}" place)
  if(status EQUAL 0 OR place EQUAL -1)
    message(FATAL_ERROR "Configuring should have failed with: ${REFUSED}\nIt ended with ${status} and:\n${output}")
  endif()
  return()
endif()

if(NOT status EQUAL 0)
  message(FATAL_ERROR "Configuring failed:\n${output}")
endif()
execute_process(COMMAND "${CMAKE_COMMAND}" --build "${BUILD}" --target ${RUN}
  RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "Building failed:\n${output}")
endif()
foreach(executable IN LISTS RUN)
  execute_process(COMMAND "${BUILD}/${executable}"
    RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output TIMEOUT 600)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${executable} ended with ${status}:\n${output}")
  endif()
endforeach()
