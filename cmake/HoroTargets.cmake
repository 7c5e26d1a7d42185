# SPDX-License-Identifier: Apache-2.0
# horo_library(<folder> SOURCES ... LINK ...)  static library horo_<folder>, alias horo::<folder>
# horo_tool(<name> SOURCES ... LINK ...)       installed executable bin/<name>
# horo_test(<name> SOURCES ... LINK ... LABELS ... TIMEOUT n)   Catch2 test program, one CTest test per case
# horo_module(<name> [SHARED_RUNTIME] SOURCES ... LINK ...)   loadable backend lib/horo/horo-backend-<name>.so
# horo_product(<target>...)                    marks targets as part of the product
#
# Targets for a part of the build: horo_product (tools and library), horo_tests_<label> (test programs of a label; labels
# that run the tools need horo_product too).

add_custom_target(horo_product)

function(horo_product)
  add_dependencies(horo_product ${ARGN})
endfunction()

# horo_precompiled(<target> <headers>)   makes the target include the headers that horo_precompile(<headers> ...) compiles
function(horo_precompiled target headers)
  if(HORO_PCH)
    target_precompile_headers(${target} REUSE_FROM horo_precompiled_${headers})
  endif()
endfunction()

# horo_precompile(<headers> <path> LINK ...)   object library horo_precompiled_<headers>, made of <path>.hpp and <path>.cpp
function(horo_precompile headers path)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  if(HORO_PCH)
    add_library(horo_precompiled_${headers} OBJECT "${path}.cpp")
    target_link_libraries(horo_precompiled_${headers} PRIVATE horo_flags ${ARG_LINK})
    target_precompile_headers(horo_precompiled_${headers} PRIVATE "${path}.hpp")
  endif()
endfunction()

horo_precompile(library "${CMAKE_CURRENT_LIST_DIR}/standard_headers")

function(horo_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;PRIVATE_LINK" ${ARGN})
  add_library(horo_${name} STATIC ${ARG_SOURCES})
  add_library(horo::${name} ALIAS horo_${name})
  target_link_libraries(horo_${name} PUBLIC horo_flags horo_fmt ${ARG_LINK} PRIVATE ${ARG_PRIVATE_LINK})
  horo_precompiled(horo_${name} library)
endfunction()

# horo_optimise_little()   compiles the targets of this folder, and of those in it, with -O1. That takes two thirds of the time
# of -O3; it is for code that waits for processes and people, where the difference cannot be measured.
macro(horo_optimise_little)
  add_compile_options($<$<CONFIG:Release>:-O1>)
endmacro()

if(CMAKE_BUILD_TYPE STREQUAL "Release" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT HORO_SANITIZE)
  set(HORO_INLINE_AT_LINK ON)
  add_link_options($<IF:$<BOOL:$<TARGET_PROPERTY:HORO_INLINES_AT_LINK>>,-flto=auto$<SEMICOLON>-Wno-psabi,-fno-lto>)
endif()

# horo_inline_at_link(<library> <target>...)   linking the library inlines calls between the sources of these targets. Their
# objects contain ordinary code too, which every other program links, so the tests link as fast as before.
function(horo_inline_at_link library)
  if(HORO_INLINE_AT_LINK)
    foreach(target IN LISTS library ARGN)
      target_compile_options(${target} PRIVATE -O3 -flto -ffat-lto-objects)
    endforeach()
    set_target_properties(${library} PROPERTIES HORO_INLINES_AT_LINK ON)
  endif()
endfunction()

function(horo_tool name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE horo_flags ${ARG_LINK})
  # Start-up time matters to users: the tools load no libstdc++ and bind symbols at once.
  if(NOT HORO_SANITIZE)
    target_link_options(${name} PRIVATE -static-libstdc++ -static-libgcc -Wl,--as-needed -Wl,--gc-sections)
  endif()
  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  horo_product(${name})
endfunction()

function(horo_module name)
  cmake_parse_arguments(ARG "SHARED_RUNTIME" "" "SOURCES;LINK" ${ARGN})
  set(target horo_backend_${name})
  set(map "${PROJECT_SOURCE_DIR}/runtime/backends/module.map")
  add_library(${target} MODULE ${ARG_SOURCES})
  target_link_libraries(${target} PRIVATE horo_flags ${ARG_LINK})
  target_compile_definitions(${target} PRIVATE HORO_VERSION_CODE=${HORO_VERSION_CODE})
  horo_precompiled(${target} library)
  target_link_options(${target} PRIVATE "-Wl,--version-script=${map}" -Wl,--no-undefined -Wl,--as-needed)
  if(NOT HORO_SANITIZE AND NOT ARG_SHARED_RUNTIME)
    target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc)
  endif()
  # A wheel puts the libraries that a module needs beside the module.
  set_target_properties(${target} PROPERTIES PREFIX "" OUTPUT_NAME horo-backend-${name} LINK_DEPENDS "${map}"
    LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib/horo" INSTALL_RPATH "$ORIGIN")
  install(TARGETS ${target} LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/horo")
  horo_product(${target})
endfunction()

function(horo_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;LINK;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 60)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE horo_flags horo_test_main ${ARG_LINK})
  horo_precompiled(${name} test)
  # Test files define helpers of the same names, and one file is compiled far more often than all of them.
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests" UNITY_BUILD OFF)
  catch_discover_tests(${name} TEST_PREFIX "${name}: " DISCOVERY_MODE PRE_TEST
    PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}")
  foreach(label IN LISTS ARG_LABELS)
    if(NOT TARGET horo_tests_${label})
      add_custom_target(horo_tests_${label})
    endif()
    add_dependencies(horo_tests_${label} ${name})
  endforeach()
endfunction()
