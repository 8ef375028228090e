# SPDX-License-Identifier: MIT
#
#   cmake -DPACKAGING=… -DBUILD=… -DGENERATOR=… -DOPTIONS=… -P vcpkg.cmake
#
# Runs the portfile of the vcpkg port with functions that stand for vcpkg's, of the same effects: what the features give
# is configured, installed and moved to where vcpkg wants it; then builds and runs the port's test package with it, and
# has the compiler look at that of the Conan recipe. vcpkg itself, its dependencies and its checks of a port are not
# tried.
include("${CMAKE_CURRENT_LIST_DIR}/library.cmake")

set(PORT holdfast)
set(CURRENT_PACKAGES_DIR "${BUILD}/packages")
file(REMOVE_RECURSE "${BUILD}")

# The features: those that the manifest of the test package asks for, and the port's default ones.
set(port "${PACKAGING}/vcpkg/holdfast")
file(READ "${port}/vcpkg.json" manifest)
file(READ "${PACKAGING}/vcpkg/test_package/vcpkg.json" test_manifest)
set(FEATURES core)
function(add_features json)
  string(JSON count LENGTH "${json}" ${ARGN})
  foreach(at RANGE 1 ${count})
    math(EXPR at "${at} - 1")
    string(JSON feature GET "${json}" ${ARGN} ${at})
    string(JSON description GET "${manifest}" features "${feature}" description)  # it has to be one of the port's
    list(APPEND FEATURES "${feature}")
  endforeach()
  set(FEATURES "${FEATURES}" PARENT_SCOPE)
endfunction()
add_features("${manifest}" default-features)
add_features("${test_manifest}" dependencies 0 features)

string(JSON version GET "${manifest}" version)
file(READ "${PACKAGING}/../include/holdfast/core/version.hpp" header)
string(REGEX MATCHALL "VERSION_[A-Z]+ [0-9]+" numbers "${header}")
list(TRANSFORM numbers REPLACE ".* " "")
list(JOIN numbers "." number)
if(NOT version STREQUAL number)
  message(FATAL_ERROR "The port is of version ${version}, the headers are of ${number}")
endif()

function(vcpkg_cmake_configure)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "SOURCE_PATH" "OPTIONS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "vcpkg_cmake_configure: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  list(TRANSFORM arg_OPTIONS REPLACE ";" "\\\\;")
  run("${CMAKE_COMMAND}" -S "${arg_SOURCE_PATH}" -B "${BUILD}/port" -G "${GENERATOR}" ${OPTIONS}
    "-DCMAKE_INSTALL_PREFIX=${CURRENT_PACKAGES_DIR}" ${arg_OPTIONS})
endfunction()

function(vcpkg_cmake_install)
  run("${CMAKE_COMMAND}" --build "${BUILD}/port" --target install)
endfunction()

function(vcpkg_cmake_config_fixup)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "CONFIG_PATH;PACKAGE_NAME" "")
  set(there "${CURRENT_PACKAGES_DIR}/share/${PORT}")
  file(RENAME "${CURRENT_PACKAGES_DIR}/${arg_CONFIG_PATH}" "${there}")
  file(GLOB files "${there}/*.cmake")
  set(up "get_filename_component(_IMPORT_PREFIX \"\${_IMPORT_PREFIX}\" PATH)\n")
  foreach(file IN LISTS files)
    file(READ "${file}" text)
    string(REPLACE "${up}${up}${up}" "${up}${up}" text "${text}")
    file(WRITE "${file}" "${text}")
  endforeach()
endfunction()

function(vcpkg_fixup_pkgconfig)
endfunction()

function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "FILE_LIST")
  file(COPY_FILE "${arg_FILE_LIST}" "${CURRENT_PACKAGES_DIR}/share/${PORT}/copyright")
endfunction()

include("${port}/portfile.cmake")

foreach(file IN ITEMS share/holdfast/holdfast-config.cmake share/holdfast/copyright share/holdfast/usage
    share/pkgconfig/holdfast-redis.pc include/holdfast/redis.hpp)
  if(NOT EXISTS "${CURRENT_PACKAGES_DIR}/${file}")
    message(FATAL_ERROR "The port does not install ${file}")
  endif()
endforeach()

file(GLOB_RECURSE all LIST_DIRECTORIES true "${CURRENT_PACKAGES_DIR}/*")
foreach(folder IN LISTS all)
  file(GLOB content "${folder}/*")
  if(IS_DIRECTORY "${folder}" AND NOT content)
    message(FATAL_ERROR "The port leaves an empty folder: ${folder}")
  endif()
endforeach()

build("${BUILD}/test_package" "${PACKAGING}/vcpkg/test_package" "-DCMAKE_PREFIX_PATH=${CURRENT_PACKAGES_DIR}")
run("${BUILD}/test_package/test_package")

# Conan's test package, as with its default options: what it is given has no TLS. It is only looked at by the compiler.
file(WRITE "${BUILD}/look.cmake" "add_compile_options(-fsyntax-only)\nset(CMAKE_CXX_LINK_EXECUTABLE true)\n")
build("${BUILD}/conan_test_package" "${PACKAGING}/conan/test_package" "-DCMAKE_PREFIX_PATH=${CURRENT_PACKAGES_DIR}"
  -DCMAKE_DISABLE_FIND_PACKAGE_OpenSSL=ON "-DCMAKE_PROJECT_INCLUDE=${BUILD}/look.cmake")
