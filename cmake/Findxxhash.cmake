# SPDX-License-Identifier: Apache-2.0
#[[
Finds the header of xxHash (0.8 or newer). quire inlines it, so no library is linked.

  xxhash::headers     include path of xxhash.h
  xxhash_INCLUDE_DIR  the same as a cache variable
  xxhash_VERSION      version the header states
]]
find_path(xxhash_INCLUDE_DIR xxhash.h)
mark_as_advanced(xxhash_INCLUDE_DIR)

unset(xxhash_VERSION)
if(xxhash_INCLUDE_DIR)
  foreach(part IN ITEMS MAJOR MINOR RELEASE)
    file(STRINGS "${xxhash_INCLUDE_DIR}/xxhash.h" line REGEX "^#define XXH_VERSION_${part} +[0-9]+" LIMIT_COUNT 1)
    string(REGEX MATCH "[0-9]+" number "${line}")
    string(APPEND xxhash_VERSION ".${number}")
  endforeach()
  string(SUBSTRING "${xxhash_VERSION}" 1 -1 xxhash_VERSION)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(xxhash REQUIRED_VARS xxhash_INCLUDE_DIR VERSION_VAR xxhash_VERSION)

if(xxhash_FOUND AND NOT TARGET xxhash::headers)
  add_library(xxhash::headers INTERFACE IMPORTED)
  target_include_directories(xxhash::headers INTERFACE "${xxhash_INCLUDE_DIR}")
endif()
