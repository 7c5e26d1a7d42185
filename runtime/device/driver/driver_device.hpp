// SPDX-License-Identifier: Apache-2.0
// A device behind CUDA's driver or HIP's runtime. It uses the device's primary context, as
// frameworks do, so that their streams, events and memory are valid here.
#pragma once

#include <memory>
#include <optional>

#include "runtime/device/device.hpp"
#include "runtime/device/driver/cuda_driver.hpp"
#include "runtime/device/driver/driver_kernels.hpp"

namespace horo::runtime {

/// The driver outlives the device. Fails: not_found (no such device), io.
Result<std::unique_ptr<Device>> open_driver_device(const cuda::Driver& driver, int index);

/// The parts of a device behind CUDA's driver.
struct DriverParts {
  const cuda::Driver* driver = nullptr;
  cuda::Context context = nullptr;
  DriverKernels* kernels = nullptr;  ///< Null: this build has none.
};

/// Nothing for a device of another kind.
std::optional<DriverParts> parts_of(Device& device);

}  // namespace horo::runtime
