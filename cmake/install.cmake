# SPDX-License-Identifier: MIT
#
# Installs the headers and the CMake package. One export a component, so that find_package loads only
# the targets asked for and needs only what these need.

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(holdfast_package_dir "${CMAKE_INSTALL_DATADIR}/cmake/holdfast")

foreach(component IN LISTS holdfast_all_components)
  if(component STREQUAL "compiled")
    install(FILES "${PROJECT_SOURCE_DIR}/cmake/holdfast-compiled.cmake" DESTINATION "${holdfast_package_dir}")
    continue()
  endif()
  set(headers "")
  if(component STREQUAL "core" AND CMAKE_VERSION VERSION_GREATER_EQUAL "3.23")
    set(headers FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
  endif()
  set_target_properties(holdfast_${component} PROPERTIES EXPORT_NAME ${component})
  install(TARGETS holdfast_${component} EXPORT holdfast-${component} ${headers})
  install(EXPORT holdfast-${component} NAMESPACE holdfast:: DESTINATION "${holdfast_package_dir}")
endforeach()
if(CMAKE_VERSION VERSION_LESS "3.23")
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
    FILES_MATCHING PATTERN "*.hpp")
endif()

configure_package_config_file(cmake/holdfast-config.cmake.in holdfast-config.cmake
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
  DESTINATION "${holdfast_package_dir}")
