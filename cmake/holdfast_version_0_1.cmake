# SPDX-License-Identifier: MIT
#
#   holdfast_version_0_1(variable)
#
# Sets `variable` to a folder with the headers of version 0.1, which are in the history of this repository; to nothing where that is not there.
function(holdfast_version_0_1 variable)
  set(last_of_0_1 6b46f89^)
  set(old "${PROJECT_BINARY_DIR}/0.1")
  find_package(Git QUIET)
  if(GIT_FOUND AND NOT EXISTS "${old}/include")
    file(MAKE_DIRECTORY "${old}")
    execute_process(
      COMMAND "${GIT_EXECUTABLE}" -C "${PROJECT_SOURCE_DIR}" archive -o "${old}/headers.tar" ${last_of_0_1} include
      RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
    if(status EQUAL 0)
      file(ARCHIVE_EXTRACT INPUT "${old}/headers.tar" DESTINATION "${old}")
    endif()
  endif()
  if(EXISTS "${old}/include")
    set(${variable} "${old}/include" PARENT_SCOPE)
  else()
    set(${variable} "" PARENT_SCOPE)
  endif()
endfunction()
