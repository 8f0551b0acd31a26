# SPDX-License-Identifier: Apache-2.0
# Install rules and the config package: find_package(quire 0.1) accepts the same minor version only.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(quire_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/quire")

install(TARGETS quire EXPORT quireTargets FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(EXPORT quireTargets NAMESPACE quire:: DESTINATION "${quire_package_dir}")
configure_package_config_file(cmake/quireConfig.cmake.in "${PROJECT_BINARY_DIR}/quireConfig.cmake"
  INSTALL_DESTINATION "${quire_package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/quireConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES
  "${PROJECT_BINARY_DIR}/quireConfig.cmake"
  "${PROJECT_BINARY_DIR}/quireConfigVersion.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/Findxxhash.cmake"
  DESTINATION "${quire_package_dir}")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
