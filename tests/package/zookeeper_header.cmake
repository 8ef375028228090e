# SPDX-License-Identifier: MIT
#
#   cmake -DCXX=… -DFOLDERS=… -DINCLUDE=… -DMODULES=… -DHEADERS=… -DBUILD=… -DGENERATOR=… -DOPTIONS=…
#     -P zookeeper_header.cmake
#
# The header of ZooKeeper's client is taken from a folder zookeeper/ or, as Conan's package has it, from beside those of
# others; CMake's module finds it there, too. FOLDERS are the compiler's own: the compiler looks in copies of them, of
# links, from which zookeeper/ is missing. HEADERS is the folder above zookeeper/.
cmake_minimum_required(VERSION 3.22)
file(REMOVE_RECURSE "${BUILD}")
set(flat "${BUILD}/flat/include")
file(MAKE_DIRECTORY "${flat}" "${BUILD}/flat/lib")

file(GLOB files "${HEADERS}/zookeeper/*.h")
foreach(file IN LISTS files)
  get_filename_component(name "${file}" NAME)
  file(CREATE_LINK "${file}" "${flat}/${name}" SYMBOLIC)
endforeach()

set(compile "${CXX}" -std=c++20 -fsyntax-only -nostdinc -nostdinc++ -x c++ "-I${INCLUDE}")
set(number 0)
foreach(folder IN LISTS FOLDERS)
  if(EXISTS "${folder}/zookeeper")
    file(GLOB files RELATIVE "${folder}" "${folder}/*")
    list(REMOVE_ITEM files zookeeper)
    math(EXPR number "${number} + 1")
    file(MAKE_DIRECTORY "${BUILD}/${number}")
    foreach(file IN LISTS files)
      file(CREATE_LINK "${folder}/${file}" "${BUILD}/${number}/${file}" SYMBOLIC)
    endforeach()
    set(folder "${BUILD}/${number}")
  endif()
  list(APPEND compile -isystem "${folder}")
endforeach()
file(WRITE "${BUILD}/use.cpp" "#include <holdfast/zookeeper/zookeeper_mt.hpp>\n")

execute_process(COMMAND ${compile} -isystem "${flat}" "${BUILD}/use.cpp" RESULT_VARIABLE status ERROR_VARIABLE said)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "zookeeper.h without its folder is not taken:\n${said}")
endif()
execute_process(COMMAND "${CMAKE_COMMAND}" -E env LC_ALL=C ${compile} "${BUILD}/use.cpp"
  RESULT_VARIABLE status ERROR_VARIABLE said)
string(REGEX MATCHALL "[^\n]*error: [^\n]*" errors "${said}")
list(LENGTH errors many)
if(status EQUAL 0 OR many GREATER 1 OR NOT errors MATCHES "zookeeper/zookeeper.h, of ZooKeeper")
  message(FATAL_ERROR "The compiler should have missed zookeeper/zookeeper.h, and ended:\n${said}")
endif()

file(WRITE "${BUILD}/flat/lib/libzookeeper.a" "")
file(WRITE "${BUILD}/flat/lib/libhashtable.a" "")
file(WRITE "${BUILD}/CMakeLists.txt" "cmake_minimum_required(VERSION 3.22)
project(finds_zookeeper LANGUAGES NONE)
find_package(zookeeper 3.8 REQUIRED)
get_target_property(folder zookeeper::zookeeper_mt INTERFACE_INCLUDE_DIRECTORIES)
get_target_property(library zookeeper::zookeeper_mt IMPORTED_LOCATION)
get_target_property(parts zookeeper::zookeeper_mt INTERFACE_LINK_LIBRARIES)
if(NOT \"\${folder};\${library};\${parts}\" STREQUAL
    \"${flat};${BUILD}/flat/lib/libzookeeper.a;${BUILD}/flat/lib/libhashtable.a\")
  message(FATAL_ERROR \"It was found as \${folder};\${library};\${parts}\")
endif()\n")
execute_process(COMMAND "${CMAKE_COMMAND}" -S "${BUILD}" -B "${BUILD}/build" -G "${GENERATOR}" ${OPTIONS}
    "-DCMAKE_MODULE_PATH=${MODULES}" "-DCMAKE_PREFIX_PATH=${BUILD}/flat"
    -DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF -DCMAKE_FIND_USE_SYSTEM_ENVIRONMENT_PATH=OFF
  RESULT_VARIABLE status OUTPUT_VARIABLE said ERROR_VARIABLE said)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "CMake's module did not find it:\n${said}")
endif()
