// SPDX-License-Identifier: Apache-2.0
// The driver that HORO_GPU_DRIVER names, for torch's backend of software: memory, streams and
// events by the entry points of CUDA's driver, and kernels by the software device's own.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tests/software_device/software_device.h"

namespace horo::torch_device {

/// Entry points. A call that fails throws c10::Error, which Python sees as RuntimeError.
struct Driver {
  int (*init)(unsigned);
  int (*device_count)(int*);
  int (*retain)(void**, int);
  int (*push)(void*);
  int (*pop)(void**);
  int (*allocate)(std::uint64_t*, std::size_t);
  int (*copy)(std::uint64_t, std::uint64_t, std::size_t, void*);
  int (*make_stream)(void**, unsigned);
  int (*synchronize_stream)(void*);
  int (*make_event)(void**, unsigned);
  int (*destroy_event)(void*);
  int (*record)(void*, void*);
  int (*query)(void*);
  int (*synchronize_event)(void*);
  int (*wait)(void*, void*, unsigned);
  decltype(&horo_software_device_launch) launch;
};

/// Loaded at the first use.
const Driver& driver();

int device_count();

/// Throws unless the code is that of success.
void check(int code, const char* call);

/// While it exists, the device's context is current in this thread.
class InContext {
 public:
  explicit InContext(int device);
  ~InContext();
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;
};

/// Which device and streams the calling thread uses, as for CUDA.
struct Current {
  static constexpr int kMostDevices = 16;

  int device = 0;
  void* streams[kMostDevices] = {};  ///< Null: the default stream.

  static Current& of_thread();

  static void* stream(int device) { return of_thread().streams[device]; }
};

}  // namespace horo::torch_device
