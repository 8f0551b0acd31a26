# SPDX-License-Identifier: Apache-2.0
# The warnings quire is developed under. A private target: it never reaches those who use the library. Only CI makes them
# errors: the next compiler knows warnings that this one does not, and whoever builds a benchmark with it wants figures.
add_library(quire_warnings INTERFACE)
target_compile_options(quire_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wold-style-cast -Wnon-virtual-dtor
  $<$<BOOL:${QUIRE_WERROR}>:-Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Warnings of the optimiser, which gcc 12 and 13 raise falsely inside std::string and std::optional and under
  # -fsanitize. The sanitizer builds find what they mean to find.
  target_compile_options(quire_warnings INTERFACE
    -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread -Wno-restrict -Wno-maybe-uninitialized
    -Wno-free-nonheap-object -Wno-dangling-pointer)
endif()
