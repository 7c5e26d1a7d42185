// SPDX-License-Identifier: Apache-2.0
// The devices of this machine, by the library that the process has loaded or that this host has:
// CUDA's driver, or HIP's runtime for AMD's devices (choose_api).
#pragma once

#include <memory>

#include "runtime/device/device.hpp"
#include "runtime/device/driver/device_api.hpp"

namespace horo::runtime {

/// The library, if there is a device. Fails: unavailable (says which of the two is missing).
Result<const cuda::DeviceApi*> machine_api();

/// Fails: as machine_api(); not_found (no such device); io.
Result<std::unique_ptr<Device>> open_machine_device(int index);

/// Makes the device the calling thread's, for libraries that use the runtime of CUDA or HIP. Fails:
/// as open_machine_device().
Status enter_machine_device(int index);

}  // namespace horo::runtime
