# SPDX-License-Identifier: MIT
#
# The programs of an outside project: one for each backend that holdfast gives it. Common warnings are
# errors there, so our headers must give none.

# program(name SOURCES file... LIBRARIES target...)
function(program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBRARIES")
  list(TRANSFORM arg_SOURCES PREPEND "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/")
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LIBRARIES})
  target_compile_options(${name} PRIVATE -Wall -Wextra -Werror)
endfunction()

foreach(backend IN ITEMS memory sim redis redlock zookeeper)
  if(TARGET holdfast::${backend})
    program(use_${backend} SOURCES use_${backend}.cpp LIBRARIES holdfast::${backend})
  endif()
endforeach()

if(TARGET holdfast::asio)
  program(use_asio SOURCES use_asio.cpp LIBRARIES holdfast::memory holdfast::asio)
endif()

# Stores by their URLs, brought by other parts of the program.
if(TARGET holdfast::redis AND TARGET holdfast::memory)
  add_library(brings_memory SHARED "${CMAKE_CURRENT_LIST_DIR}/make_store/shared_library.cpp")
  target_link_libraries(brings_memory PRIVATE holdfast::memory)
  set_target_properties(brings_memory PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  add_library(brings_redis STATIC "${CMAKE_CURRENT_LIST_DIR}/make_store/archive.cpp")
  target_link_libraries(brings_redis PUBLIC holdfast::redis)
  program(use_make_store SOURCES make_store/main.cpp LIBRARIES brings_memory brings_redis)
endif()

# What is behind the headers, compiled apart.
if(TARGET holdfast::redlock)
  program(use_separately SOURCES use_redis.cpp separate/use_redlock.cpp separate/holdfast.cpp LIBRARIES holdfast::redlock)
  target_compile_definitions(use_separately PRIVATE HOLDFAST_COMPILED)
endif()

program(use_make_store_separately SOURCES separate/make_store.cpp LIBRARIES holdfast::core)
target_compile_definitions(use_make_store_separately PRIVATE HOLDFAST_COMPILED)

# The same with the component that does it.
if(TARGET holdfast::compiled)
  program(use_compiled SOURCES use_redis.cpp separate/use_redlock.cpp LIBRARIES holdfast::compiled)
  program(use_compiled_after_fork SOURCES compiled/forks.cpp LIBRARIES holdfast::compiled)
  # As a shared library, it stays loaded after dlclose.
  get_target_property(compiled_type holdfast::compiled TYPE)
  if(compiled_type STREQUAL "SHARED_LIBRARY")
    add_custom_command(TARGET use_compiled POST_BUILD VERBATIM
      COMMAND sh -c "readelf -d \"$1\" | grep -q NODELETE" sh $<TARGET_FILE:holdfast::compiled>)
  endif()
endif()

# One file that brings TLS, and one that knows nothing of it, in both ways.
if(TARGET holdfast::redis AND TARGET holdfast::tls)
  program(use_tls SOURCES use_tls.cpp tls/bring_tls.cpp LIBRARIES holdfast::redis holdfast::tls)
  # TLS brought by other parts of the program, and wanted before `main` begins.
  add_library(brings_tls_shared SHARED "${CMAKE_CURRENT_LIST_DIR}/tls/library.cpp")
  target_link_libraries(brings_tls_shared PRIVATE holdfast::tls)
  set_target_properties(brings_tls_shared PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  add_library(brings_tls STATIC "${CMAKE_CURRENT_LIST_DIR}/tls/library.cpp")
  target_link_libraries(brings_tls PUBLIC holdfast::tls)
  program(use_tls_of_a_shared_library SOURCES tls/before_main.cpp LIBRARIES holdfast::redis brings_tls_shared)
  program(use_tls_of_an_archive SOURCES tls/before_main.cpp LIBRARIES holdfast::redis brings_tls)
endif()
if(TARGET holdfast::redlock AND TARGET holdfast::tls)
  program(use_tls_separately SOURCES use_tls.cpp tls/bring_tls.cpp separate/holdfast.cpp LIBRARIES holdfast::redlock holdfast::tls)
  target_compile_definitions(use_tls_separately PRIVATE HOLDFAST_COMPILED)
endif()

# With all that a compiler can warn of.
if(TARGET holdfast::redlock AND TARGET holdfast::memory)
  include(${CMAKE_CURRENT_LIST_DIR}/strict.cmake)
  program(use_strictly SOURCES strict/use_all.cpp LIBRARIES holdfast::redlock holdfast::memory
    $<TARGET_NAME_IF_EXISTS:holdfast::tls> $<TARGET_NAME_IF_EXISTS:holdfast::zookeeper>)
  target_compile_options(use_strictly PRIVATE ${strict_options_${CMAKE_CXX_COMPILER_ID}})
  target_compile_definitions(use_strictly PRIVATE
    $<$<TARGET_EXISTS:holdfast::tls>:USE_TLS> $<$<TARGET_EXISTS:holdfast::zookeeper>:USE_ZOOKEEPER>)
endif()
