# SPDX-License-Identifier: MIT
#
# The targets. Every component exists and is installable on every machine; its alias holdfast::<name> is
# given out only where its dependencies are found, so a target that is linked is a target that works.

find_package(Threads REQUIRED)

# The headers, once, on the target that every other one links.
add_library(holdfast_core INTERFACE)
target_compile_features(holdfast_core INTERFACE cxx_std_20)
target_link_libraries(holdfast_core INTERFACE Threads::Threads)
file(GLOB_RECURSE holdfast_headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/*.hpp")
if(CMAKE_VERSION VERSION_GREATER_EQUAL "3.23")
  target_sources(holdfast_core INTERFACE
    FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}/include" FILES ${holdfast_headers})
else()
  target_include_directories(holdfast_core INTERFACE
    "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>" "$<INSTALL_INTERFACE:include>")
endif()
# Not all of them can be compiled with this target alone: those of a store include its client library.
set_target_properties(holdfast_core PROPERTIES VERIFY_INTERFACE_HEADER_SETS OFF)
# Whoever adds this folder to his own build is not shown our headers' warnings, as he is not by an installed holdfast; we are.
if(NOT PROJECT_IS_TOP_LEVEL)
  target_include_directories(holdfast_core SYSTEM INTERFACE "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>")
endif()

add_library(holdfast_memory INTERFACE)
target_link_libraries(holdfast_memory INTERFACE holdfast_core)

add_library(holdfast_sim INTERFACE)
target_link_libraries(holdfast_sim INTERFACE holdfast_core)

add_library(holdfast_redis INTERFACE)
target_link_libraries(holdfast_redis INTERFACE holdfast_core hiredis::hiredis)

add_library(holdfast_redlock INTERFACE)
target_link_libraries(holdfast_redlock INTERFACE holdfast_redis)

add_library(holdfast_tls INTERFACE)
target_link_libraries(holdfast_tls INTERFACE holdfast_core OpenSSL::SSL)

add_library(holdfast_zookeeper INTERFACE)
target_link_libraries(holdfast_zookeeper INTERFACE holdfast_core zookeeper::zookeeper_mt)

add_library(holdfast_asio INTERFACE)
target_link_libraries(holdfast_asio INTERFACE holdfast_core asio::asio)

set(holdfast_all_components core memory sim asio tls redis redlock compiled zookeeper)

# What was asked for must be there; what was not is given where it can be.
set(holdfast_wanted ${HOLDFAST_COMPONENTS})
foreach(component IN LISTS holdfast_wanted)
  if(NOT component IN_LIST holdfast_all_components)
    message(FATAL_ERROR "holdfast: HOLDFAST_COMPONENTS names '${component}', which is no component. "
      "The components are: ${holdfast_all_components}.")
  endif()
endforeach()
if(NOT holdfast_wanted)
  set(holdfast_wanted ${holdfast_all_components})
endif()
if("compiled" IN_LIST holdfast_wanted)
  list(APPEND holdfast_wanted redlock)
endif()
if("redlock" IN_LIST holdfast_wanted)
  list(APPEND holdfast_wanted redis)
endif()

if("redis" IN_LIST holdfast_wanted)
  find_package(hiredis 0.14 QUIET)
  if(NOT hiredis_FOUND)
    set(holdfast_reason "was not found")
    set(holdfast_remedy " On Debian and Ubuntu: apt-get install libhiredis-dev")
    if(hiredis_NOT_FOUND_MESSAGE)
      set(holdfast_reason "cannot be used: ${hiredis_NOT_FOUND_MESSAGE}")
      set(holdfast_remedy "")
    endif()
    if(HOLDFAST_COMPONENTS)
      message(FATAL_ERROR
        "holdfast: redis, redlock and compiled need hiredis, which ${holdfast_reason}.${holdfast_remedy}")
    endif()
    message(STATUS "holdfast: no redis and redlock, as hiredis ${holdfast_reason}.${holdfast_remedy}")
    list(REMOVE_ITEM holdfast_wanted redis redlock compiled)
  endif()
endif()

if("tls" IN_LIST holdfast_wanted)
  find_package(OpenSSL 1.1.1 QUIET)
  if(NOT OPENSSL_FOUND)
    if(HOLDFAST_COMPONENTS)
      message(FATAL_ERROR "holdfast: tls needs OpenSSL, which was not found. "
        "On Debian and Ubuntu: apt-get install libssl-dev")
    endif()
    message(STATUS "holdfast: no tls, as OpenSSL was not found (package libssl-dev)")
    list(REMOVE_ITEM holdfast_wanted tls)
  endif()
endif()

if("asio" IN_LIST holdfast_wanted AND NOT TARGET asio::asio)
  find_package(asio QUIET MODULE)
  if(NOT asio_FOUND)
    if(HOLDFAST_COMPONENTS)
      message(FATAL_ERROR "holdfast: asio needs Asio 1.22 or Boost 1.81, or later ones, which were not found. "
        "On Debian and Ubuntu: apt-get install libasio-dev")
    endif()
    message(STATUS "holdfast: no asio, as neither Asio nor Boost.Asio was found (packages libasio-dev, libboost-dev)")
    list(REMOVE_ITEM holdfast_wanted asio)
  endif()
endif()

if("zookeeper" IN_LIST holdfast_wanted AND NOT TARGET zookeeper::zookeeper_mt)
  find_package(zookeeper 3.8 QUIET)
  if(NOT zookeeper_FOUND)
    if(HOLDFAST_COMPONENTS)
      message(FATAL_ERROR "holdfast: zookeeper needs ZooKeeper's C client, which was not found. "
        "On Debian and Ubuntu: apt-get install libzookeeper-mt-dev")
    endif()
    message(STATUS "holdfast: no zookeeper, as its C client was not found (package libzookeeper-mt-dev)")
    list(REMOVE_ITEM holdfast_wanted zookeeper)
  endif()
endif()

list(APPEND holdfast_wanted core)
list(REMOVE_DUPLICATES holdfast_wanted)
set(holdfast_interfaces ${holdfast_wanted})
list(REMOVE_ITEM holdfast_interfaces compiled)
foreach(component IN LISTS holdfast_interfaces)
  add_library(holdfast::${component} ALIAS holdfast_${component})
endforeach()
if(HOLDFAST_BUILD_LIBRARY)
  include("${CMAKE_CURRENT_LIST_DIR}/library.cmake")
elseif("compiled" IN_LIST holdfast_wanted)
  include("${CMAKE_CURRENT_LIST_DIR}/holdfast-compiled.cmake")
endif()
