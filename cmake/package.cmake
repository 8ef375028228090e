# SPDX-License-Identifier: MIT
#
# CPack: an archive of the source, and Debian's binary packages of it, which packaging/debian.sh builds. holdfast-dev is
# all that header-only use needs, and the same on every machine; libholdfast needs HOLDFAST_BUILD_LIBRARY.
set(CPACK_PACKAGE_NAME holdfast)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Distributed locks with the interface of std::mutex")
set(CPACK_PACKAGE_VENDOR "the holdfast authors")
file(STRINGS "${PROJECT_SOURCE_DIR}/packaging/debian/control" maintainer REGEX "^Maintainer: ")
string(REPLACE "Maintainer: " "" CPACK_PACKAGE_CONTACT "${maintainer}")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_STRIP_FILES ON)

set(CPACK_SOURCE_GENERATOR TGZ)
set(CPACK_SOURCE_PACKAGE_FILE_NAME "holdfast-${PROJECT_VERSION}")
set(CPACK_SOURCE_IGNORE_FILES "${PROJECT_SOURCE_DIR}/build/" "/[.]git/" "/[.]cache/" __pycache__/ "~$")
cmake_path(IS_PREFIX PROJECT_SOURCE_DIR "${PROJECT_BINARY_DIR}" built_inside)
if(built_inside AND NOT PROJECT_BINARY_DIR STREQUAL PROJECT_SOURCE_DIR)
  list(APPEND CPACK_SOURCE_IGNORE_FILES "${PROJECT_BINARY_DIR}/")
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
if(NOT DEFINED CPACK_DEBIAN_PACKAGE_RELEASE)  # packaging/debian/rules takes it from the changelog
  set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
endif()
set(CPACK_DEBIAN_PACKAGE_SOURCE holdfast)
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
set(version "${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}")
set(library "libholdfast${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}")

set(about
"Locks that a whole fleet of processes shares. They are kept by one Redis, by
Redlock over independent Redis masters, by ZooKeeper, or in the memory of the
process. They are renewed while they are held, their loss is announced, and
every holder has a fencing token.")

set(CPACK_COMPONENTS_ALL headers)
set(CPACK_DEBIAN_HEADERS_PACKAGE_NAME holdfast-dev)
set(CPACK_DEBIAN_HEADERS_PACKAGE_ARCHITECTURE all)
# CPack has no variable for Multi-Arch before CMake 3.31: it is a line more in another field.
set(CPACK_DEBIAN_HEADERS_PACKAGE_PRIORITY "optional\nMulti-Arch: foreign")
set(CPACK_DEBIAN_HEADERS_PACKAGE_RECOMMENDS libhiredis-dev)
set(CPACK_DEBIAN_HEADERS_PACKAGE_SUGGESTS "libasio-dev, libssl-dev, libzookeeper-mt-dev, libholdfast-dev")
set(CPACK_COMPONENT_HEADERS_DESCRIPTION "${about}
.
This package has the headers, which are the whole library.")
if(HOLDFAST_BUILD_LIBRARY)
  list(APPEND CPACK_COMPONENTS_ALL library library-dev)
  set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME "${library}")
  set(CPACK_DEBIAN_LIBRARY_PACKAGE_PRIORITY "optional\nMulti-Arch: same")
  set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
  set(CPACK_DEBIAN_LIBRARY_PACKAGE_SHLIBDEPS ON)
  set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "${about}
.
This package has the stores as a shared library.")
  # CPack makes the first itself, but takes a look at every file of every package for it.
  set(shlibs "${PROJECT_BINARY_DIR}/shlibs")
  file(WRITE "${shlibs}"
    "libholdfast ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} ${library} (>= ${PROJECT_VERSION})\n")
  set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA "${shlibs};${PROJECT_SOURCE_DIR}/packaging/debian/triggers")
  set(CPACK_DEBIAN_LIBRARY-DEV_PACKAGE_NAME libholdfast-dev)
  set(CPACK_DEBIAN_LIBRARY-DEV_PACKAGE_PRIORITY "optional\nMulti-Arch: same")
  set(CPACK_DEBIAN_LIBRARY-DEV_PACKAGE_DEPENDS
    "holdfast-dev (= ${version}), ${library} (= ${version}), libhiredis-dev, libzookeeper-mt-dev")
  set(CPACK_COMPONENT_LIBRARY-DEV_DESCRIPTION "${about}
.
This package has what programs need that link the stores as a library.")
endif()

# Debian wants these in each package. `cmake --install` leaves them out.
foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  string(TOUPPER "${component}" upper)
  set(folder "${CMAKE_INSTALL_DATADIR}/doc/${CPACK_DEBIAN_${upper}_PACKAGE_NAME}")
  install(FILES "${PROJECT_SOURCE_DIR}/packaging/debian/copyright" DESTINATION "${folder}"
    COMPONENT ${component} EXCLUDE_FROM_ALL)
  install(FILES "${PROJECT_BINARY_DIR}/changelog.gz" "${PROJECT_BINARY_DIR}/changelog.Debian.gz"
    DESTINATION "${folder}" COMPONENT ${component} EXCLUDE_FROM_ALL OPTIONAL)
endforeach()
include(CPack)
