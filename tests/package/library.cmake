# SPDX-License-Identifier: MIT
#
# What install_library.cmake, link_library.cmake and vcpkg.cmake share.
cmake_minimum_required(VERSION 3.22)

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
