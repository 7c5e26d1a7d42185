# SPDX-License-Identifier: Apache-2.0
# horo_find_mpi(<name> <wrapper>...)   Makes the target horo_mpi_<name> if one of the compiler wrappers is installed, with
# its include folders and libraries. Several MPI libraries may be installed; find_package(MPI) supports only one.

function(horo_find_mpi name)
  string(TOUPPER ${name} variable)
  find_program(HORO_${variable}_CC NAMES ${ARGN})
  set(compiler ${HORO_${variable}_CC})
  if(HORO_MPI STREQUAL "OFF" OR NOT compiler)
    if(HORO_MPI STREQUAL "ON")
      message(FATAL_ERROR "HORO_MPI is ON and there is no ${ARGN} (Debian: libopenmpi-dev and libmpich-dev)")
    endif()
    message(STATUS "horo: HORO_MPI is OFF or ${ARGN} is not installed: building without ${name}")
    return()
  endif()
  execute_process(COMMAND ${compiler} -show OUTPUT_VARIABLE command OUTPUT_STRIP_TRAILING_WHITESPACE
                  COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(words UNIX_COMMAND "${command}")
  list(FILTER words INCLUDE REGEX "^-[ILl]")
  set(includes ${words})
  list(FILTER includes INCLUDE REGEX "^-I")
  list(TRANSFORM includes REPLACE "^-I" "")
  list(FILTER words EXCLUDE REGEX "^-I")
  add_library(horo_mpi_${name} INTERFACE)
  target_include_directories(horo_mpi_${name} SYSTEM INTERFACE ${includes})
  target_compile_definitions(horo_mpi_${name} INTERFACE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
  target_link_libraries(horo_mpi_${name} INTERFACE ${words})
endfunction()

horo_find_mpi(openmpi mpicc.openmpi)
horo_find_mpi(mpich mpicc.mpich)
