# SPDX-License-Identifier: Apache-2.0
# Toolchain file: builds for aarch64 on another processor, with Debian's cross compiler. Tests run under qemu-user.
#
# `scripts/packages --install aarch64` installs the compiler and the emulator, and makes the folder of arm64 libraries.

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)

set(HORO_SYSROOT "${CMAKE_CURRENT_LIST_DIR}/../build/sysroot/aarch64" CACHE PATH "Folder of arm64 libraries")
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES HORO_SYSROOT)
get_filename_component(CMAKE_SYSROOT "${HORO_SYSROOT}" ABSOLUTE)
if(NOT EXISTS "${CMAKE_SYSROOT}/.packages")
  message(FATAL_ERROR "no arm64 libraries in ${CMAKE_SYSROOT}: run 'scripts/packages --install aarch64'")
endif()

set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

# Programs of this machine; libraries, headers and packages of the other.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

set(CMAKE_CROSSCOMPILING_EMULATOR "qemu-aarch64-static;-L;${CMAKE_SYSROOT}")
