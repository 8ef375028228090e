# SPDX-License-Identifier: MIT
#
# holdfast.pc for the headers, and holdfast-<component>.pc for each component: what CMake's targets say, in pkg-config's
# words. They name no folder of this machine, so that an installed holdfast can be moved.

# holdfast_pc(name description FOLDER dir [REQUIRES list] [CFLAGS flags] [LIBS flags] [PRIVATE list] [PRIVATE_LIBS flags])
#   PRIVATE…: what only a static libholdfast needs.
function(holdfast_pc name description)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "FOLDER;INSTALL_COMPONENT;REQUIRES;CFLAGS;LIBS;PRIVATE;PRIVATE_LIBS" "")
  set(pc_name "${name}")
  set(pc_description "${PROJECT_DESCRIPTION}: ${description}")
  set(pc_requires "${arg_REQUIRES}")
  set(pc_requires_private "${arg_PRIVATE}")
  set(pc_cflags "${arg_CFLAGS}")
  set(pc_libs "${arg_LIBS}")
  set(pc_libs_private "${arg_PRIVATE_LIBS}")
  set(folder "${CMAKE_INSTALL_PREFIX}/${arg_FOLDER}")
  if(IS_ABSOLUTE "${arg_FOLDER}")
    set(folder "${arg_FOLDER}")
  endif()
  file(RELATIVE_PATH pc_to_prefix "${folder}" "${CMAKE_INSTALL_PREFIX}")
  string(REGEX REPLACE "/$" "" pc_to_prefix "${pc_to_prefix}")
  file(RELATIVE_PATH pc_to_include "${folder}" "${CMAKE_INSTALL_FULL_INCLUDEDIR}")
  set(pc_libdir "")
  if(arg_LIBS MATCHES "libdir")
    file(RELATIVE_PATH pc_libdir "${folder}" "${CMAKE_INSTALL_FULL_LIBDIR}")
    string(REGEX REPLACE "/$" "" pc_libdir "${pc_libdir}")
    set(pc_libdir "libdir=\${pcfiledir}/${pc_libdir}\n")
  endif()
  set(file "${PROJECT_BINARY_DIR}/pkgconfig/${name}.pc")
  configure_file("${PROJECT_SOURCE_DIR}/cmake/holdfast.pc.in" "${file}" @ONLY)
  # A field that says nothing is left out.
  file(READ "${file}" text)
  string(REGEX REPLACE "\n[A-Za-z.]+: *(\n[A-Za-z.]+: *)*\n" "\n" text "${text}")
  file(WRITE "${file}" "${text}")
  install(FILES "${file}" DESTINATION "${arg_FOLDER}" COMPONENT ${arg_INSTALL_COMPONENT})
endfunction()

set(here FOLDER "${CMAKE_INSTALL_DATADIR}/pkgconfig" INSTALL_COMPONENT headers)
holdfast_pc(holdfast "the headers" ${here} CFLAGS "-I\${includedir} -pthread" LIBS -pthread)
holdfast_pc(holdfast-core "the headers" ${here} REQUIRES holdfast)
holdfast_pc(holdfast-memory "locks within a process" ${here} REQUIRES holdfast)
holdfast_pc(holdfast-sim "locks in virtual time" ${here} REQUIRES holdfast)
holdfast_pc(holdfast-redis "locks on one Redis" ${here} REQUIRES "holdfast, hiredis >= 0.14")
holdfast_pc(holdfast-redlock "locks on a majority of Redis masters" ${here} REQUIRES "holdfast, hiredis >= 0.14")
holdfast_pc(holdfast-tls "rediss:// URLs, by OpenSSL" ${here} REQUIRES "holdfast, openssl >= 1.1.1")
holdfast_pc(holdfast-asio "completion tokens of Asio" ${here} REQUIRES holdfast)
# The C client of ZooKeeper has no file of its own.
holdfast_pc(holdfast-zookeeper "locks on ZooKeeper" ${here} REQUIRES holdfast CFLAGS -DTHREADED LIBS -lzookeeper_mt)
if(HOLDFAST_BUILD_LIBRARY)
  set(client "")
  if(TARGET holdfast::zookeeper)
    set(client PRIVATE_LIBS -lzookeeper_mt)
  endif()
  holdfast_pc(holdfast-compiled "all stores, compiled" REQUIRES holdfast PRIVATE hiredis ${client}
    FOLDER "${CMAKE_INSTALL_LIBDIR}/pkgconfig" INSTALL_COMPONENT library-dev
    CFLAGS -DHOLDFAST_COMPILED LIBS "-L\${libdir} -lholdfast")
endif()
