# SPDX-License-Identifier: MIT
#
#   holdfast_unity(variable name source...)
#
# Sets `variable` to a file that has the sources compiled together. CMake's own unity builds put the sources one behind the
# other; here each is in a namespace of its own, so that what one says for itself (`using`, constants, fixtures) is not seen by the others. What they
# include comes first, outside of these: CMake runs again when a source has changed. An include that one lacks and another has is not missed here.
function(holdfast_unity variable name)
  set(includes "")
  set(bodies "")
  foreach(source IN LISTS ARGN)
    get_filename_component(path "${source}" ABSOLUTE)
    get_filename_component(folder "${path}" DIRECTORY)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${path}")
    file(STRINGS "${path}" lines REGEX "^#include ")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE "^#include \"(.*)\"$" "\\1" header "${line}")
      if(EXISTS "${folder}/${header}")
        set(line "#include \"${folder}/${header}\"")
      endif()
      string(APPEND includes "${line}\n")
    endforeach()
    string(MAKE_C_IDENTIFIER "${source}" namespace)
    string(APPEND bodies "namespace unity_${namespace} {\n#include \"${path}\"\n}\n")
  endforeach()
  set(file "${CMAKE_CURRENT_BINARY_DIR}/unity/${name}.cpp")
  file(CONFIGURE OUTPUT "${file}" CONTENT "@includes@\n@bodies@" @ONLY)
  set(${variable} "${file}" PARENT_SCOPE)
endfunction()
