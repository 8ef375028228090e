# SPDX-License-Identifier: MIT
#
#   cmake -DSOURCE=… -DBUILD=… -DPREFIX=… -DGENERATOR=… -DOPTIONS=… -P install_library.cmake
#
# Builds libholdfast, and installs it in PREFIX.
include("${CMAKE_CURRENT_LIST_DIR}/library.cmake")

build("${BUILD}" "${SOURCE}" -DHOLDFAST_BUILD_LIBRARY=ON -DHOLDFAST_BUILD_TESTS=OFF -DHOLDFAST_BUILD_EXAMPLES=OFF)
file(REMOVE_RECURSE "${PREFIX}")
run("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${PREFIX}")
