# SPDX-License-Identifier: MIT
#
# Checks that the first error of a compiler has certain words, and that it gives one more at most: that it ends there.
#   cmake -DCOMPILER=… -DFLAGS=… -DINCLUDE=… -DHEADERS=a.hpp;… -DSOURCE=… -DWORDS=… -P first_words.cmake

separate_arguments(flags NATIVE_COMMAND "${FLAGS}")
foreach(header IN LISTS HEADERS)
  execute_process(
    COMMAND "${CMAKE_COMMAND}" -E env LC_ALL=C "${COMPILER}" ${flags} -fsyntax-only "-I${INCLUDE}" "-DHOLDFAST_HEADER=<${header}>" "${SOURCE}"
    RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(status EQUAL 0)
    message(FATAL_ERROR "The compiler should have refused <${header}>.")
  endif()
  string(REGEX MATCHALL "[^\n]*error: [^\n]*" errors "${output}")
  list(LENGTH errors many)
  list(GET errors 0 first)
  string(FIND "${first}" "${WORDS}" place)
  if(place EQUAL -1 OR many GREATER 2)
    message(FATAL_ERROR "With <${header}> the compiler gave ${many} errors, the first of which should have said '${WORDS}':\n${output}")
  endif()
endforeach()
