# An overlay port: it builds the sources that it is in, packaging/vcpkg being the folder of --overlay-ports.
set(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../..")

# Nothing is compiled. A feature brings what its component needs, and has the configuration fail if that is not found.
set(VCPKG_BUILD_TYPE release)
set(components core memory sim)
foreach(feature IN ITEMS asio redis tls zookeeper)
  if(feature IN_LIST FEATURES)
    list(APPEND components ${feature})
  endif()
endforeach()
if("redis" IN_LIST FEATURES)
  list(APPEND components redlock)
endif()

vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    "-DHOLDFAST_COMPONENTS=${components}"
    -DHOLDFAST_BUILD_TESTS=OFF
    -DHOLDFAST_BUILD_EXAMPLES=OFF
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH share/cmake/holdfast)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/share/cmake")  # it is empty now

file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
