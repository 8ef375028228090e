# SPDX-License-Identifier: MIT
#
# The programs of an outside project: one for each backend that holdfast gives it. Common warnings are
# errors there, so our headers must give none.

foreach(backend IN ITEMS memory redis redlock zookeeper)
  if(TARGET holdfast::${backend})
    add_executable(use_${backend} "${CMAKE_CURRENT_LIST_DIR}/use_${backend}.cpp")
    target_link_libraries(use_${backend} PRIVATE holdfast::${backend})
    target_compile_options(use_${backend} PRIVATE -Wall -Wextra -Werror)
  endif()
endforeach()

# What is behind the headers, compiled apart.
if(TARGET holdfast::redlock)
  add_executable(use_separately "${CMAKE_CURRENT_LIST_DIR}/use_redis.cpp" "${CMAKE_CURRENT_LIST_DIR}/separate/use_redlock.cpp"
    "${CMAKE_CURRENT_LIST_DIR}/separate/holdfast.cpp")
  target_compile_definitions(use_separately PRIVATE HOLDFAST_SEPARATE_COMPILATION)
  target_link_libraries(use_separately PRIVATE holdfast::redlock)
  target_compile_options(use_separately PRIVATE -Wall -Wextra -Werror)
endif()
