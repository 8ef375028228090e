# SPDX-License-Identifier: MIT
#
#   holdfast_test(name SOURCES file... LIBRARIES target... [TIMEOUT seconds] [COST number])
#
# One Catch2 executable, holdfast_test_<name>; each of its test cases is a CTest test "<name>/<test case>"
# with the label <name>, so that `ctest -L name`, `-R words` and `-j` work case by case.
#
# A TIMEOUT only has to end a test that hangs: 600 where none is given. Those of a greater COST begin before the others.
#
# With HOLDFAST_TESTS_TOGETHER, a test is that many test cases, one after the other in one process: a sanitizer takes a third of a second to
# start, which is more than most of them take.
#
# Catch2 2.13 and 3 both do. Its main and its precompiled header are built once, in holdfast_catch.

set(HOLDFAST_TESTS_TOGETHER 1 CACHE STRING "How many test cases are run in one process")
mark_as_advanced(HOLDFAST_TESTS_TOGETHER)

find_package(Catch2 REQUIRED)

set(support "${PROJECT_SOURCE_DIR}/tests/support")
add_library(holdfast_catch STATIC "${support}/catch_main.cpp" "${support}/overheard.cpp" "${support}/precompiled.cpp")
target_include_directories(holdfast_catch PUBLIC "${PROJECT_SOURCE_DIR}/tests")
target_link_libraries(holdfast_catch PUBLIC Catch2::Catch2 holdfast::core PRIVATE holdfast_warnings)
# Every message of an error passes through overheard.cpp, which is linked for that, wherever it stands in the order.
set(message_constructor _ZNSt13runtime_errorC2ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE)
target_link_options(holdfast_catch PUBLIC
  "LINKER:--wrap=${message_constructor}" "LINKER:--undefined=__wrap_${message_constructor}")
# Catch 2's main has to be the first to include its header; it is long, and nobody waits for it.
set_source_files_properties("${support}/catch_main.cpp" "${support}/overheard.cpp" PROPERTIES
  SKIP_PRECOMPILE_HEADERS ON COMPILE_OPTIONS "-O0;-g0")
target_precompile_headers(holdfast_catch PRIVATE "${support}/precompiled.hpp")

# The locks themselves, compiled and precompiled once for all areas that use them.
if(TARGET holdfast::redlock)
  add_library(holdfast_test_locks STATIC "${support}/locks.cpp")
  target_link_libraries(holdfast_test_locks PUBLIC holdfast_catch holdfast::redlock holdfast::compiled PRIVATE holdfast_warnings)
  if(TARGET holdfast::tls)
    target_link_libraries(holdfast_test_locks PUBLIC holdfast::tls)
    target_compile_definitions(holdfast_test_locks PUBLIC HOLDFAST_TEST_TLS)
  endif()
  if(TARGET holdfast::zookeeper)
    target_link_libraries(holdfast_test_locks PUBLIC holdfast::zookeeper)
    target_compile_definitions(holdfast_test_locks PUBLIC HOLDFAST_TEST_ZOOKEEPER)
  endif()
  target_precompile_headers(holdfast_test_locks PRIVATE "${support}/precompiled.hpp" "${support}/locks.hpp")
endif()

function(holdfast_test name)
  cmake_parse_arguments(arg "" "TIMEOUT;COST" "SOURCES;LIBRARIES" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 600)
  endif()
  if(NOT arg_COST)
    set(arg_COST 0)
  endif()

  set(target "holdfast_test_${name}")
  add_executable(${target} ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE holdfast_catch holdfast_warnings ${arg_LIBRARIES})
  if("holdfast_test_locks" IN_LIST arg_LIBRARIES)
    target_precompile_headers(${target} REUSE_FROM holdfast_test_locks)
  else()
    target_precompile_headers(${target} REUSE_FROM holdfast_catch)
  endif()

  # Which test cases there are is known only when it is built.
  set(tests "${CMAKE_CURRENT_BINARY_DIR}/${target}_tests.cmake")
  set(list --list-tests --verbosity quiet)
  if(Catch2_VERSION VERSION_LESS 3)
    set(list --list-test-names-only)
  endif()
  add_custom_command(TARGET ${target} POST_BUILD BYPRODUCTS "${tests}" VERBATIM
    COMMAND "${CMAKE_COMMAND}" "-DEXECUTABLE=$<TARGET_FILE:${target}>" "-DLIST=${list}" -DNAME=${name}
      -DTIMEOUT=${arg_TIMEOUT} -DCOST=${arg_COST} -DTOGETHER=${HOLDFAST_TESTS_TOGETHER} "-DOUTPUT=${tests}" -P "${PROJECT_SOURCE_DIR}/cmake/discover_tests.cmake")
  set(include "${CMAKE_CURRENT_BINARY_DIR}/${target}_include.cmake")
  file(WRITE "${include}"
    "if(EXISTS \"${tests}\")\n  include(\"${tests}\")\nelse()\n  add_test(${name}/not_built ${target})\nendif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${include}")
endfunction()
