# SPDX-License-Identifier: MIT
#
# Asks a Catch2 executable for its test cases and writes them as CTest tests; see holdfast_test.cmake.
#   cmake -DEXECUTABLE=… -DLIST=options -DNAME=… -DTIMEOUT=… -DCOST=… -DTOGETHER=number -DOUTPUT=file -P discover_tests.cmake
#
# TOGETHER: that many cases are one test, in one process. Those of one store have it in their names; those with a server in Java, and those that
# are tagged [alone], stay alone.
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

execute_process(COMMAND "${EXECUTABLE}" ${LIST} "[alone]" OUTPUT_VARIABLE alone)
string(PREPEND alone "\n")

# What a CMake list takes for itself stands aside while the lines are one.
foreach(code IN ITEMS 29 30 31)
  string(ASCII ${code} placeholder_${code})
endforeach()
string(REPLACE "[" "${placeholder_29}" output "${output}")
string(REPLACE "]" "${placeholder_30}" output "${output}")
string(REPLACE ";" "${placeholder_31}" output "${output}")
string(REPLACE "\n" ";" lines "${output}")

set(script "")
set(groups "")
set(count 0)
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
    set(slots 4)
  endif()
  set(labels ${NAME})
  foreach(lesson IN LISTS lessons)
    string(FIND "${named_${lesson}}" "\n${test}\n" found)
    if(NOT found EQUAL -1)
      string(APPEND labels ";${lesson}")
    endif()
  endforeach()
  string(FIND "${alone}" "\n${test}\n" found)
  if(TOGETHER GREATER 1 AND slots EQUAL 1 AND found EQUAL -1)
    string(REGEX MATCH "[a-z_]+_store$" group "${test}")
    if(group STREQUAL "")
      set(group cases)
    endif()
    list(APPEND groups "${group}")
    list(APPEND members_${group} ${count})
    set(pattern_${count} "${pattern}")
    set(labels_${count} ${labels})
    math(EXPR count "${count} + 1")
    continue()
  endif()
  string(APPEND script
    "add_test([==[${NAME}/${test}]==] [==[${EXECUTABLE}]==] [==[${pattern}]==])\n"
    "set_tests_properties([==[${NAME}/${test}]==] PROPERTIES LABELS \"${labels}\" TIMEOUT ${TIMEOUT} COST ${COST} PROCESSORS ${slots})\n")
endforeach()

# Neighbours, which are alike and often long together, come into different tests.
list(REMOVE_DUPLICATES groups)
math(EXPR timeout "3 * ${TIMEOUT}")
foreach(group IN LISTS groups)
  list(LENGTH members_${group} many)
  math(EXPR tests "(${many} + ${TOGETHER} - 1) / ${TOGETHER}")
  foreach(number RANGE 1 ${tests})
    set(patterns "")
    set(labels "")
    math(EXPR first "${number} - 1")
    math(EXPR last "${many} - 1")
    foreach(at RANGE ${first} ${last} ${tests})
      list(GET members_${group} ${at} member)
      string(APPEND patterns "${pattern_${member}},")
      list(APPEND labels ${labels_${member}})
    endforeach()
    list(REMOVE_DUPLICATES labels)
    set(name "${group} ${number} of ${tests}")
    string(APPEND script
      "add_test([==[${NAME}/${name}]==] [==[${EXECUTABLE}]==] --durations yes [==[${patterns}]==])\n"
      "set_tests_properties([==[${NAME}/${name}]==] PROPERTIES LABELS \"${labels}\" TIMEOUT ${timeout} COST ${COST})\n")
  endforeach()
endforeach()
file(WRITE "${OUTPUT}" "${script}")
