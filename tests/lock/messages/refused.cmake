# SPDX-License-Identifier: MIT
#
# Checks that the compiler refuses a file, and that each of some words is in its message.
#   cmake -DCOMPILER=… -DFLAGS=… -DINCLUDE=… -DSOURCE=… -DWORDS=…;… -P refused.cmake

separate_arguments(flags NATIVE_COMMAND "${FLAGS}")
execute_process(
  COMMAND "${CMAKE_COMMAND}" -E env LC_ALL=C "${COMPILER}" ${flags} -std=c++20 -fsyntax-only "-I${INCLUDE}" "${SOURCE}"
  RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(status EQUAL 0)
  message(FATAL_ERROR "The compiler should have refused ${SOURCE}.")
endif()
foreach(word IN LISTS WORDS)
  string(FIND "${output}" "${word}" place)
  if(place EQUAL -1)
    message(FATAL_ERROR "The compiler's message has no '${word}':\n${output}")
  endif()
endforeach()
