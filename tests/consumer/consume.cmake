# SPDX-License-Identifier: Apache-2.0
# Installs BUILD into a prefix and moves the prefix, because an installation must not depend on its path. Then configures
# and builds SOURCE against it, and runs its programs on one, two and three ranks.

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE rc OUTPUT_VARIABLE out ERROR_VARIABLE out)
  message(STATUS "${ARGN}\n${out}")
  if(NOT rc EQUAL 0)
    message(FATAL_ERROR "exit status ${rc}")
  endif()
  set(output "${out}" PARENT_SCOPE)
endfunction()

function(expect text)
  string(FIND "${output}" "${text}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "the output above lacks: ${text}")
  endif()
endfunction()

file(REMOVE_RECURSE "${WORK}")
run(${CMAKE_COMMAND} --install "${BUILD}" --prefix "${WORK}/made")
file(RENAME "${WORK}/made" "${WORK}/prefix")
run(${CMAKE_COMMAND} -G ${GENERATOR} -S "${SOURCE}" -B "${WORK}/build"
  "-DCMAKE_PREFIX_PATH=${WORK}/prefix" -DCMAKE_C_COMPILER=${CC} -DCMAKE_CXX_COMPILER=${CXX})
run(${CMAKE_COMMAND} --build "${WORK}/build")

foreach(program IN ITEMS c_consumer cpp_consumer)
  run("${WORK}/build/${program}")
  expect("sum over 1 rank(s): 1")
  run("${WORK}/prefix/bin/horo" run -np 2 "${WORK}/build/${program}")
  expect("sum over 2 rank(s): 3")
  run("${WORK}/prefix/bin/horo" run -np 3 "${WORK}/build/${program}")
  expect("sum over 3 rank(s): 6")
endforeach()

# A version that does not exist must be refused; otherwise the version file has no effect.
execute_process(COMMAND ${CMAKE_COMMAND} -G ${GENERATOR} -S "${SOURCE}" -B "${WORK}/refused" -DHORO_WANTED=99.0
  "-DCMAKE_PREFIX_PATH=${WORK}/prefix" -DCMAKE_C_COMPILER=${CC} -DCMAKE_CXX_COMPILER=${CXX}
  RESULT_VARIABLE rc OUTPUT_QUIET ERROR_QUIET)
if(rc EQUAL 0)
  message(FATAL_ERROR "find_package(horo 99.0) was satisfied")
endif()
