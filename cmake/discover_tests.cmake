# SPDX-License-Identifier: MIT
#
# Asks a Catch2 executable for its test cases and writes them as CTest tests; see holdfast_test.cmake.
#   cmake -DEXECUTABLE=… -DLIST=options -DNAME=… -DTIMEOUT=… -DCOST=… -DOUTPUT=file -P discover_tests.cmake
#
# Catch2 brings a script for this, too, but that of 2.13 breaks a name in two at a semicolon, and each half
# then matches no test case.

execute_process(COMMAND "${EXECUTABLE}" ${LIST}
  OUTPUT_VARIABLE output ERROR_VARIABLE error RESULT_VARIABLE status)
# Catch2 2.13 ends with the number of test cases, a crash is no number.
if(NOT status MATCHES "^[0-9]+$" OR output STREQUAL "")
  message(FATAL_ERROR "${EXECUTABLE} could not list its test cases: ${status}\n${output}${error}")
endif()

# A tag [lesson-7] becomes a label: the tests that have it are named.
execute_process(COMMAND "${EXECUTABLE}" --list-tags OUTPUT_VARIABLE tags)
string(REGEX MATCHALL "lesson-[0-9]+" lessons "${tags}")
foreach(lesson IN LISTS lessons)
  execute_process(COMMAND "${EXECUTABLE}" ${LIST} "[${lesson}]" OUTPUT_VARIABLE named_${lesson})
  string(PREPEND named_${lesson} "\n")
endforeach()

# What a CMake list takes for itself stands aside while the lines are one.
foreach(code IN ITEMS 29 30 31)
  string(ASCII ${code} placeholder_${code})
endforeach()
string(REPLACE "[" "${placeholder_29}" output "${output}")
string(REPLACE "]" "${placeholder_30}" output "${output}")
string(REPLACE ";" "${placeholder_31}" output "${output}")
string(REPLACE "\n" ";" lines "${output}")

set(script "")
foreach(line IN LISTS lines)
  if(line STREQUAL "")
    continue()
  endif()
  string(REPLACE "${placeholder_29}" "[" test "${line}")
  string(REPLACE "${placeholder_30}" "]" test "${test}")
  string(REPLACE "${placeholder_31}" ";" test "${test}")
  # What Catch2 would read as more than a name.
  string(REGEX REPLACE "([\\,[\"])" "\\\\\\1" pattern "${test}")
  string(REPLACE "]" "\\]" pattern "${pattern}")
  # Java machines are busier than a test that only waits.
  set(slots 1)
  if(NAME STREQUAL "zookeeper" OR test MATCHES "zookeeper_store|on ZooKeeper")
    set(slots 2)
  endif()
  set(labels ${NAME})
  foreach(lesson IN LISTS lessons)
    string(FIND "${named_${lesson}}" "\n${test}\n" found)
    if(NOT found EQUAL -1)
      string(APPEND labels ";${lesson}")
    endif()
  endforeach()
  string(APPEND script
    "add_test([==[${NAME}/${test}]==] [==[${EXECUTABLE}]==] [==[${pattern}]==])\n"
    "set_tests_properties([==[${NAME}/${test}]==] PROPERTIES LABELS \"${labels}\" TIMEOUT ${TIMEOUT} COST ${COST} PROCESSORS ${slots})\n")
endforeach()
file(WRITE "${OUTPUT}" "${script}")
