# SPDX-License-Identifier: Apache-2.0
cmake_minimum_required(VERSION 3.25)
# cmake -DCOMPILER=… -DARGUMENTS=response file -DSOURCE=… -DKIND=broken|fixed -P compile_fail.cmake
file(STRINGS "${SOURCE}" expect REGEX "^// expect: ")
string(REGEX REPLACE "^// expect: " "" expect "${expect}")
if(expect STREQUAL "")
  message(FATAL_ERROR "${SOURCE}: no '// expect: <regex>' line")
endif()

set(fixed)
if(KIND STREQUAL "fixed")
  set(fixed -DFIXED)
endif()
set(ENV{LC_ALL} C) # plain quotes in the diagnostics
execute_process(
  COMMAND "${COMPILER}" -std=c++20 -fsyntax-only ${fixed} "@${ARGUMENTS}" "${SOURCE}"
  RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
message("${output}")

if(KIND STREQUAL "fixed")
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "the FIXED twin must compile")
  endif()
elseif(result EQUAL 0)
  message(FATAL_ERROR "must not compile")
elseif(NOT output MATCHES "${expect}")
  message(FATAL_ERROR "refused, but not with: ${expect}")
endif()
