# SPDX-License-Identifier: MIT
#
# Installs the headers, and what finds them: the CMake package and the files of pkg-config. One export a component, so
# that find_package loads only the targets asked for and needs only what these need. What is the same on every machine is
# the installation's component `headers`; `library` and `library-dev` are libholdfast and what links it, in the folder of
# libraries.

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(holdfast_package_dir "${CMAKE_INSTALL_DATADIR}/cmake/holdfast")
set(holdfast_library_dir "${CMAKE_INSTALL_LIBDIR}/cmake/holdfast")

foreach(component IN LISTS holdfast_all_components)
  if(component STREQUAL "compiled")
    install(FILES "${PROJECT_SOURCE_DIR}/cmake/holdfast-compiled.cmake" DESTINATION "${holdfast_package_dir}"
      COMPONENT headers)
    continue()
  endif()
  set(headers "")
  if(component STREQUAL "core" AND CMAKE_VERSION VERSION_GREATER_EQUAL "3.23")
    set(headers FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT headers)
  endif()
  set_target_properties(holdfast_${component} PROPERTIES EXPORT_NAME ${component})
  install(TARGETS holdfast_${component} EXPORT holdfast-${component} ${headers})
  install(EXPORT holdfast-${component} NAMESPACE holdfast:: DESTINATION "${holdfast_package_dir}" COMPONENT headers)
endforeach()
if(CMAKE_VERSION VERSION_LESS "3.23")
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT headers
    FILES_MATCHING PATTERN "*.hpp")
endif()

if(HOLDFAST_BUILD_LIBRARY)
  install(TARGETS holdfast_compiled EXPORT holdfast-static
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT library-dev)
  install(TARGETS holdfast_compiled_shared EXPORT holdfast-shared
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT library NAMELINK_COMPONENT library-dev)
  foreach(form IN ITEMS static shared)
    install(EXPORT holdfast-${form} NAMESPACE holdfast:: DESTINATION "${holdfast_library_dir}" COMPONENT library-dev)
  endforeach()
  # Its presence tells that libholdfast is there, for pointers of which size, and what the static one needs.
  set(needs redis redlock)
  if(TARGET holdfast::zookeeper)
    list(APPEND needs zookeeper)
  endif()
  file(WRITE "${PROJECT_BINARY_DIR}/holdfast-library.cmake"
    "set(_holdfast_library_folder \"\${CMAKE_CURRENT_LIST_DIR}\")\n"
    "set(_holdfast_library_pointer ${CMAKE_SIZEOF_VOID_P})\n"
    "set(_holdfast_library_needs ${needs})\n")
  install(FILES "${PROJECT_BINARY_DIR}/holdfast-library.cmake" DESTINATION "${holdfast_library_dir}"
    COMPONENT library-dev)
endif()

# Where else than in the usual folders libholdfast may be. The file is the same on every machine but for that.
set(elsewhere "")
if(NOT CMAKE_INSTALL_LIBDIR MATCHES "^lib(64|/${CMAKE_LIBRARY_ARCHITECTURE})?$")
  set(elsewhere "${CMAKE_INSTALL_LIBDIR}")
endif()
configure_package_config_file(cmake/holdfast-config.cmake.in holdfast-config.cmake
  PATH_VARS elsewhere
  INSTALL_DESTINATION "${holdfast_package_dir}"
  NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(holdfast-config-version.cmake
  COMPATIBILITY SameMinorVersion # while the version is 0.x
  ARCH_INDEPENDENT)
install(
  FILES
    "${PROJECT_BINARY_DIR}/holdfast-config.cmake"
    "${PROJECT_BINARY_DIR}/holdfast-config-version.cmake"
    "${PROJECT_SOURCE_DIR}/cmake/Findasio.cmake"
    "${PROJECT_SOURCE_DIR}/cmake/Findhiredis.cmake"
    "${PROJECT_SOURCE_DIR}/cmake/Findzookeeper.cmake"
  DESTINATION "${holdfast_package_dir}" COMPONENT headers)

include("${CMAKE_CURRENT_LIST_DIR}/pkgconfig.cmake")
