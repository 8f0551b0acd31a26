# SPDX-License-Identifier: Apache-2.0
# Tests of what compiles, links and installs; included by tests/CMakeLists.txt.

# Link twice: every header in two units of one program. A function that lacks `inline` fails here.
set(includes)
foreach(header IN LISTS quire_headers)
  file(RELATIVE_PATH name "${PROJECT_SOURCE_DIR}/include" "${header}")
  string(APPEND includes "#include <${name}>\n")
endforeach()
file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/odr/every_header.hpp" CONTENT "${includes}" @ONLY)
add_executable(link_twice odr/odr_a.cpp odr/odr_b.cpp)
target_link_libraries(link_twice PRIVATE quire::quire quire_warnings)
target_include_directories(link_twice PRIVATE "${CMAKE_CURRENT_BINARY_DIR}/odr")
add_test(NAME static/link_twice COMMAND link_twice)
set_tests_properties(static/link_twice PROPERTIES LABELS static)

# Compile-fail: tests/compile_fail/*.cpp must be refused with the diagnostic of its own "// expect: <regex>" line, and
# must compile with -DFIXED (so that the failure is the intended one). The compiler is called directly.
file(GENERATE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/compile_fail.rsp" CONTENT
  "-I\"$<JOIN:$<FILTER:$<TARGET_PROPERTY:quire,INTERFACE_INCLUDE_DIRECTORIES>,EXCLUDE,^/usr/include$>,\"\n-I\">\"\n")
file(GLOB compile_fail_sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/compile_fail/*.cpp")
foreach(source IN LISTS compile_fail_sources)
  cmake_path(GET source STEM name)
  foreach(kind IN ITEMS broken fixed)
    add_test(NAME compile_fail/${name}.${kind} COMMAND "${CMAKE_COMMAND}"
      "-DCOMPILER=${CMAKE_CXX_COMPILER}" "-DARGUMENTS=${CMAKE_CURRENT_BINARY_DIR}/compile_fail.rsp"
      "-DSOURCE=${source}" -DKIND=${kind} -P "${PROJECT_SOURCE_DIR}/cmake/compile_fail.cmake")
    set_tests_properties(compile_fail/${name}.${kind} PROPERTIES LABELS compile_fail TIMEOUT 120)
  endforeach()
endforeach()

# Those who use quire build with warnings of their own as errors: nothing that is inlined from here may raise one. g++ 12
# did for AVX-512, in one unit and in a program optimised as a whole. The program is built and, being for a processor that
# need not be this one, not run.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$" AND CMAKE_CXX_COMPILER_ID MATCHES "^(GNU|Clang)$")
  function(quire_warns_of_nothing name)
    add_test(NAME static/warnings.${name} COMMAND "${CMAKE_CXX_COMPILER}"
      -std=c++20 -O3 -Wall -Wextra -Werror ${ARGN} "@${CMAKE_CURRENT_BINARY_DIR}/compile_fail.rsp"
      "${CMAKE_CURRENT_SOURCE_DIR}/warnings/every_digest.cpp" -o "${CMAKE_CURRENT_BINARY_DIR}/every_digest.${name}")
    set_tests_properties(static/warnings.${name} PROPERTIES LABELS static TIMEOUT 300)
  endfunction()
  quire_warns_of_nothing(avx2 -c -march=x86-64-v3)
  quire_warns_of_nothing(avx512 -c -march=x86-64-v4)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU") # clang would need a linker that may not be there
    quire_warns_of_nothing(avx512_program -march=x86-64-v4 -flto=auto)
  endif()
endif()

# Header budget: the compile time of each header alone, from the log of the build.
if(CMAKE_GENERATOR STREQUAL "Ninja" AND Python3_FOUND AND PROJECT_IS_TOP_LEVEL)
  add_test(NAME static/header_budget COMMAND Python3::Interpreter
    "${PROJECT_SOURCE_DIR}/cmake/header_times.py" "${PROJECT_BINARY_DIR}" --scale 3 --quiet)
  set_tests_properties(static/header_budget PROPERTIES LABELS static SKIP_RETURN_CODE 77 RUN_SERIAL TRUE)
endif()

# Documentation: its code compiles, and README.md shows examples/readme.cpp.
if(Python3_FOUND AND PROJECT_IS_TOP_LEVEL)
  add_test(NAME static/doc_snippets COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/docs/snippets.py" "${CMAKE_CXX_COMPILER}")
  set_tests_properties(static/doc_snippets PROPERTIES LABELS static TIMEOUT 600)
endif()

# Every public failure case that is due has a test named after it, or stands in tests/pending.txt.
if(Python3_FOUND)
  add_test(NAME static/cases COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/tests/check_cases.py")
  set_tests_properties(static/cases PROPERTIES LABELS static)
  add_test(NAME static/demo_arguments COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/tests/check_demo.py")
  set_tests_properties(static/demo_arguments PROPERTIES LABELS static TIMEOUT 120)
  add_test(NAME static/test_targets COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/tests/check_test_targets.py")
  set_tests_properties(static/test_targets PROPERTIES LABELS static TIMEOUT 120)
endif()

# Consumers: another project uses quire by find_package and by add_subdirectory, and a wrong version is refused.
if(PROJECT_IS_TOP_LEVEL AND QUIRE_INSTALL)
  set(prefix "${PROJECT_BINARY_DIR}/consumer/prefix")
  add_test(NAME consumer/install COMMAND "${CMAKE_COMMAND}" --install "${PROJECT_BINARY_DIR}" --prefix "${prefix}")
  set_tests_properties(consumer/install PROPERTIES LABELS consumer FIXTURES_SETUP installed)

  function(quire_consumer name)
    add_test(NAME consumer/${name} COMMAND "${CMAKE_CTEST_COMMAND}"
      --build-and-test "${CMAKE_CURRENT_SOURCE_DIR}/consumer" "${PROJECT_BINARY_DIR}/consumer/${name}"
      --build-generator "${CMAKE_GENERATOR}"
      --build-options "-DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}" "-DCMAKE_CXX_FLAGS=${CMAKE_CXX_FLAGS}" ${ARGN}
      --test-command consumer)
    set_tests_properties(consumer/${name} PROPERTIES LABELS consumer TIMEOUT 600)
  endfunction()

  set(minor "${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}")
  math(EXPR next "${PROJECT_VERSION_MINOR} + 1")
  quire_consumer(find_package "-DCMAKE_PREFIX_PATH=${prefix}" -DQUIRE_WANTED=${minor})
  quire_consumer(refused_version "-DCMAKE_PREFIX_PATH=${prefix}" -DQUIRE_WANTED=${PROJECT_VERSION_MAJOR}.${next})
  quire_consumer(add_subdirectory "-DQUIRE_SOURCE=${PROJECT_SOURCE_DIR}")
  set_tests_properties(consumer/find_package consumer/refused_version PROPERTIES FIXTURES_REQUIRED installed)
  set_tests_properties(consumer/refused_version PROPERTIES PASS_REGULAR_EXPRESSION "package \"quire\" that is compatible")
endif()
