# SPDX-License-Identifier: Apache-2.0
cmake_minimum_required(VERSION 3.25)
# Runs PROGRAM. With ABORTS set it must abort and print what the regex says; otherwise it must return 0.
execute_process(COMMAND "${PROGRAM}" RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
message("${output}")
if(ABORTS STREQUAL "")
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "returned ${result}")
  endif()
elseif(NOT result MATCHES "abort|134")
  message(FATAL_ERROR "expected an abort, got: ${result}")
elseif(NOT output MATCHES "${ABORTS}")
  message(FATAL_ERROR "aborted without printing: ${ABORTS}")
endif()
