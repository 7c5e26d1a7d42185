# SPDX-License-Identifier: Apache-2.0
# horo_install_library(<target>)   Installs libhoro, horo.h, horo.hpp and the CMake package, so that other projects can use
#                                  find_package(horo) and link horo::horo.

include(CMakePackageConfigHelpers)

function(horo_install_library target)
  target_include_directories(${target} INTERFACE
    "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/runtime/include>"
    "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
  set_target_properties(${target} PROPERTIES EXPORT_NAME horo)
  horo_product(${target})
  install(TARGETS ${target} EXPORT horo LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(FILES
    "${PROJECT_SOURCE_DIR}/runtime/include/horo/element.hpp"
    "${PROJECT_SOURCE_DIR}/runtime/include/horo/error.hpp"
    "${PROJECT_SOURCE_DIR}/runtime/include/horo/horo.h"
    "${PROJECT_SOURCE_DIR}/runtime/include/horo/horo.hpp"
    "${PROJECT_SOURCE_DIR}/runtime/include/horo/job.hpp"
    "${PROJECT_SOURCE_DIR}/runtime/include/horo/op.hpp"
    "${PROJECT_SOURCE_DIR}/runtime/include/horo/elastic.hpp"
    "${PROJECT_SOURCE_DIR}/runtime/include/horo/process_set.hpp"
    "${PROJECT_SOURCE_DIR}/runtime/include/horo/shared_buffer.hpp"
    "${PROJECT_SOURCE_DIR}/runtime/include/horo/tensor.hpp"
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/horo)

  set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/horo)
  install(EXPORT horo NAMESPACE horo:: FILE horo-targets.cmake DESTINATION ${package_dir})
  configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/horo-config.cmake.in"
    "${PROJECT_BINARY_DIR}/horo-config.cmake" INSTALL_DESTINATION ${package_dir})
  write_basic_package_version_file("${PROJECT_BINARY_DIR}/horo-config-version.cmake"
    VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
  install(FILES "${PROJECT_BINARY_DIR}/horo-config.cmake" "${PROJECT_BINARY_DIR}/horo-config-version.cmake"
    DESTINATION ${package_dir})
endfunction()
