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
