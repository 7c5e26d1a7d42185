// SPDX-License-Identifier: Apache-2.0
// Device memory and events that processes of one host share (CUDA IPC).
#pragma once

#include <string>

#include "runtime/device/device.hpp"
#include "runtime/device/driver/cuda_driver.hpp"
#include "runtime/device/driver/driver_kernels.hpp"

namespace horo::runtime {

/// A device behind CUDA's driver, seen by code that shares its memory. Handles are bytes for
/// another process of the host; the process itself must not open its own. Thread: any. Fails: io
/// (the driver's words), unsupported (the driver cannot share).
class SharedDevice {
 public:
  /// Fails: unsupported (the device is of another kind, or the build has no kernels).
  static Result<SharedDevice> of(Device& device);

  DriverKernels& kernels() const { return *kernels_; }

  Result<std::string> share_memory(void* memory) const;
  /// Valid until close_memory(), and while the owner has not freed it.
  Result<void*> open_memory(const std::string& handle) const;
  void close_memory(void* memory) const;

  /// An event that can be shared. Its waits in other processes must be called after its record.
  Result<EventHandle> make_event() const;
  Result<std::string> share_event(EventHandle event) const;
  /// Ends with Device::destroy_event.
  Result<EventHandle> open_event(const std::string& handle) const;

 private:
  SharedDevice(const cuda::Driver& driver, cuda::Context context, DriverKernels& kernels)
      : driver_(&driver), context_(context), kernels_(&kernels) {}

  const cuda::Driver* driver_;
  cuda::Context context_;
  DriverKernels* kernels_;
};

}  // namespace horo::runtime
