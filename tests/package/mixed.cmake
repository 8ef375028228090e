# SPDX-License-Identifier: MIT
#
#   cmake -DCXX=... -DINCLUDE=... -DSOURCES=... -DFOLDER=... -P mixed.cmake
#
# A program whose files are of both forms, headers alone and HOLDFAST_COMPILED, works if they pass no lock on, and does not link if they do.
function(run expected)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY "${FOLDER}" RESULT_VARIABLE status OUTPUT_VARIABLE said ERROR_VARIABLE said)
  if(expected STREQUAL "works" AND NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGN} failed: ${said}")
  elseif(expected STREQUAL "does not link" AND (status EQUAL 0 OR NOT said MATCHES "taken\\(holdfast::v[0-9_]+::mutex"))
    message(FATAL_ERROR "${ARGN} did not fail as it has to: ${said}")
  endif()
endfunction()

file(MAKE_DIRECTORY "${FOLDER}")
set(compile "${CXX}" -std=c++20 -O0 -I "${INCLUDE}" -pthread -c)
run(works ${compile} -DHOLDFAST_COMPILED "${SOURCES}/library.cpp" -o library.o)
foreach(passes "" -DPASSES_A_LOCK)
  run(works ${compile} ${passes} "${SOURCES}/main.cpp" -o main.o)
  run(works ${compile} ${passes} -DHOLDFAST_COMPILED "${SOURCES}/other.cpp" -o other.o)
  if(passes)
    run("does not link" "${CXX}" main.o other.o library.o -pthread -o mixed)
  else()
    run(works "${CXX}" main.o other.o library.o -pthread -o mixed)
    run(works ./mixed)
  endif()
endforeach()
