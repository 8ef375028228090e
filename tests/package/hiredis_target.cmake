# SPDX-License-Identifier: MIT
#
# With HIREDIS, the project has a target hiredis::hiredis before it looks for holdfast, as with FetchContent:
#   bare       none of its include folders has hiredis/hiredis.h
#   complete   one has
#   prefix     imported; its folder is that above include/, as the package of hiredis 1.0 to 1.2 has it
#   wrapper    one of the target that it links has
#   location   imported, without folders: the header is where the compiler looks anyway
if(HIREDIS)
  set(hiredis_source "${PROJECT_BINARY_DIR}/hiredis-src")
  file(WRITE "${hiredis_source}/hiredis.h" "#error the header is not below hiredis/\n")
  set(header "#define HIREDIS_MAJOR 1\n#define HIREDIS_MINOR 2\n#define HIREDIS_PATCH 0\n")
  file(WRITE "${hiredis_source}/include/hiredis/hiredis.h" "${header}")
  if(HIREDIS STREQUAL "prefix")
    add_library(hiredis::hiredis INTERFACE IMPORTED)
    set_target_properties(hiredis::hiredis PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${hiredis_source}/.")
  elseif(HIREDIS STREQUAL "location")
    add_library(hiredis::hiredis INTERFACE IMPORTED)
  elseif(HIREDIS STREQUAL "wrapper")
    add_library(hiredis_of_others INTERFACE)
    target_include_directories(hiredis_of_others INTERFACE "${hiredis_source}/include")
    add_library(hiredis::hiredis INTERFACE IMPORTED)
    target_link_libraries(hiredis::hiredis INTERFACE hiredis_of_others m)
  else()
    add_library(hiredis INTERFACE)
    target_include_directories(hiredis INTERFACE "$<INSTALL_INTERFACE:.>" "$<BUILD_INTERFACE:${hiredis_source}>")
    if(HIREDIS STREQUAL "complete")
      target_include_directories(hiredis INTERFACE "$<BUILD_INTERFACE:${PROJECT_BINARY_DIR};${hiredis_source}/include>")
    endif()
    add_library(hiredis::hiredis ALIAS hiredis)
  endif()
endif()
