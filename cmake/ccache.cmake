# SPDX-License-Identifier: Apache-2.0
# Uses ccache when it is there. The sloppiness is what ccache needs to cache units with a precompiled header.
find_program(QUIRE_CCACHE ccache)
mark_as_advanced(QUIRE_CCACHE)
if(QUIRE_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER
    "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros "${QUIRE_CCACHE}")
endif()
