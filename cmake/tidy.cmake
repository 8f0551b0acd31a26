# SPDX-License-Identifier: Apache-2.0
# Target quire_tidy: clang-tidy on every header, each as the main file, because misc-include-cleaner looks at
# nothing else. A stamp per header keeps it incremental.
find_program(QUIRE_CLANG_TIDY NAMES clang-tidy-19)
mark_as_advanced(QUIRE_CLANG_TIDY)
if(NOT QUIRE_CLANG_TIDY)
  return()
endif()

set(includes "$<TARGET_PROPERTY:quire,INTERFACE_INCLUDE_DIRECTORIES>")
set(stamps)
foreach(header IN LISTS quire_headers)
  file(RELATIVE_PATH name "${PROJECT_SOURCE_DIR}/include" "${header}")
  if(name MATCHES "^quire/[a-z]+\\.hpp$") # an umbrella includes what it does not use: that is its purpose
    continue()
  endif()
  set(stamp "${PROJECT_BINARY_DIR}/tidy/${name}.stamp")
  cmake_path(GET stamp PARENT_PATH folder)
  file(MAKE_DIRECTORY "${folder}")
  add_custom_command(OUTPUT "${stamp}"
    COMMAND "${QUIRE_CLANG_TIDY}" --quiet "--config-file=${PROJECT_SOURCE_DIR}/.clang-tidy" --warnings-as-errors=*
      "${header}" -- -x c++ -std=c++20 -Wno-pragma-once-outside-header
      "-I$<JOIN:$<FILTER:${includes},EXCLUDE,^/usr/include$>,;-I>"
    COMMAND "${CMAKE_COMMAND}" -E touch "${stamp}"
    DEPENDS "${header}" "${PROJECT_SOURCE_DIR}/.clang-tidy"
    COMMENT "clang-tidy ${name}"
    COMMAND_EXPAND_LISTS VERBATIM)
  list(APPEND stamps "${stamp}")
endforeach()
add_custom_target(quire_tidy DEPENDS ${stamps})
