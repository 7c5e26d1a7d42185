// SPDX-License-Identifier: Apache-2.0
// The functions of the software device that a software NCCL uses. They are those of the library
// beside this one, which the program has loaded as its driver.
#pragma once

#include <cstddef>

#include "tests/software_device/software_device.h"

namespace horo::software_nccl {

struct DeviceLibrary {
  int (*launch)(void* stream, horo_software_device_span* spans, std::size_t count,
                void (*run)(void*, int), void* argument);
  int (*current)(int* on_host);
  int (*of_stream)(void* stream);
  int (*broken)();
};

/// Null: no program has loaded it. Thread: any.
const DeviceLibrary* device_library();

}  // namespace horo::software_nccl
