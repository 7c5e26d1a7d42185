# SPDX-License-Identifier: Apache-2.0
# Build options, and the settings that all targets share.

option(HORO_TESTS "Build the tests" ON)
option(HORO_BENCH "Build the benchmark programs" ON)
option(HORO_EXAMPLES "Build the examples" ON)
option(HORO_FUZZ "Build horo-fuzz: the parsers under libFuzzer; needs clang++ with its runtime" OFF)
option(HORO_UNITY "Compile several source files of a target as one, which takes less time from nothing" OFF)
option(HORO_PCH "Precompile standard headers, which takes less time from nothing" OFF)
set(HORO_SANITIZE "" CACHE STRING "Sanitizers to build with: empty, address or thread")
set(HORO_GLOO AUTO CACHE STRING "Gloo backend module: AUTO (if its headers are found), ON or OFF")
set(HORO_MPI AUTO CACHE STRING "MPI backend modules and benchmarks: AUTO (if found), ON or OFF")
set(HORO_CUDA AUTO CACHE STRING "CUDA and NCCL modules: AUTO (with kernels if nvcc is found), ON (nvcc must be there) or OFF")
set(HORO_FASTPATH AUTO CACHE STRING "Extension module of the Python package: AUTO (if Python's headers are found), ON or OFF")
set_property(CACHE HORO_SANITIZE PROPERTY STRINGS "" address thread)
set_property(CACHE HORO_GLOO HORO_MPI HORO_CUDA HORO_FASTPATH PROPERTY STRINGS AUTO ON OFF)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_UNITY_BUILD ${HORO_UNITY})
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
# -O3, CMake's own choice, compiles longer; only what every operation executes gains by it (horo_inline_at_link, the kernels).
string(REPLACE "-O3" "-O2" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")

include(GNUInstallDirs)
# The same run path for the build tree and for an installation. If CMake changed it during the installation, it would pad the
# build tree's path with empty parts, which mean the working directory.
set(CMAKE_INSTALL_RPATH "$ORIGIN/../lib" "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
list(REMOVE_DUPLICATES CMAKE_INSTALL_RPATH)
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)

find_program(HORO_CCACHE ccache)
if(HORO_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER "${HORO_CCACHE}")
  set(CMAKE_CXX_COMPILER_LAUNCHER "${HORO_CCACHE}")
  if(HORO_PCH)
    # ccache's manual asks for this with precompiled headers of GCC. Ours contain neither __TIME__ nor changing macros.
    set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros "${HORO_CCACHE}")
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
  endif()
endif()
find_program(HORO_MOLD mold)
if(HORO_MOLD AND NOT CMAKE_CROSSCOMPILING)  # A cross compiler looks for linkers of its own only.
  add_link_options(-fuse-ld=mold)
endif()

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)  # only headers; base/fmt/fmt.cpp compiles it into our binaries

# Warnings are errors in our own code; third-party headers are included as SYSTEM.
add_library(horo_flags INTERFACE)
target_compile_options(horo_flags INTERFACE
  -Wall -Wextra -Wshadow -Wswitch -Wno-missing-field-initializers -Werror
  # GCC 12 wrongly reports an overlap in "text" + std::to_string(n).
  $<$<COMPILE_LANGUAGE:CXX>:-Wconversion -Wno-restrict>)
if(HORO_PCH)
  # With precompiled headers it also reports overflows there, in the standard library's code.
  target_compile_options(horo_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread>)
endif()
if(HORO_UNITY)
  # A class of one file may have members of types that are private to that file: there is no second file to disagree.
  target_compile_options(horo_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
endif()
target_include_directories(horo_flags INTERFACE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/runtime/include")
if(HORO_SANITIZE)
  # Compiling takes most of the time of a sanitised check, and g++ wrongly warns about the sanitizers' own code.
  add_compile_options(-O1 -Wno-maybe-uninitialized)
endif()
if(HORO_SANITIZE STREQUAL "address")
  # The check "vptr" opens a pipe, so it would report an error where a test leaves the process no descriptor.
  add_compile_options(-fsanitize=address,undefined -fno-sanitize=vptr -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g1)
  # g++ 12 wrongly reports uninitialised values in the standard library's <functional> and <regex>.
  add_compile_options(-Wno-maybe-uninitialized)
  add_link_options(-fsanitize=address,undefined -fno-sanitize=vptr)
elseif(HORO_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer -g1)
  # Every fence of the wake-up protocol is accompanied by atomic read-modify-writes, which the sanitizer does support.
  add_compile_options(-Wno-tsan)
  add_link_options(-fsanitize=thread)
endif()

if(HORO_FUZZ)
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_FLAGS -fsanitize=fuzzer)
  check_cxx_source_compiles("extern \"C\" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }"
    HORO_HAS_LIBFUZZER)
  unset(CMAKE_REQUIRED_FLAGS)
  if(NOT HORO_HAS_LIBFUZZER)
    message(FATAL_ERROR "HORO_FUZZ needs a compiler with libFuzzer: CXX=clang++-16 and Debian's libclang-rt-16-dev")
  endif()
  # Warnings are checked with g++ 12 only.
  add_compile_options(-fsanitize=fuzzer-no-link -Wno-unknown-warning-option)
endif()
