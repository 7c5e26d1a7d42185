// SPDX-License-Identifier: Apache-2.0
// Adapts HIP's runtime to the functions of Driver, which are those of CUDA's driver, in the places
// where the two differ. AMD's documentation:
//   https://rocm.docs.amd.com/projects/HIP/en/latest/reference/hip_runtime_api/modules/memory_management.html
//   https://rocm.docs.amd.com/projects/HIP/en/latest/reference/hip_runtime_api/global_defines_enums_structs_files/global_enum_and_defines.html
//   https://rocm.docs.amd.com/projects/HIP/en/latest/reference/deprecated_api_list.html
//
//   Driver                          HIP
//   contexts                        deprecated; a context is a number of a device here, and the
//                                   calling thread's device is changed and given back
//   copy(to, from, bytes, stream)   has the direction as an argument
//   pointer_attribute               numbers of types of memory differ, and differ before ROCm 6
//   open_memory(.., flags)          the only flag is 0 or 1, depending on the version
//   error_name, error_text          return the text
//
// Equal in both: the numbers of errors that the code looks at, of flags of streams, events and
// pinned memory, and of attributes of pointers; handles of 64 bytes; the arguments of a launch.
#pragma once

#include <string>

#include "runtime/device/driver/cuda_driver.hpp"

namespace horo::runtime::cuda {

/// `driver` has HIP's functions from `library`, and those that differ are replaced. Once per
/// process. Returns the functions that the library lacks.
std::string adapt_hip(void* library, Driver& driver);

}  // namespace horo::runtime::cuda
