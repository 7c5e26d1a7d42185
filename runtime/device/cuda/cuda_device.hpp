// SPDX-License-Identifier: Apache-2.0
// The devices of the machine's own CUDA driver.
#pragma once

#include <memory>

#include "runtime/device/device.hpp"

namespace horo::runtime {

/// Whether there is a driver and a device. Fails: unavailable (says which of the two is missing).
Status probe_cuda();

/// Fails: as probe_cuda(); not_found (no such device); io.
Result<std::unique_ptr<Device>> open_cuda_device(int index);

/// Makes the device the calling thread's, for libraries that use CUDA's runtime. Fails: as
/// open_cuda_device().
Status enter_cuda_device(int index);

}  // namespace horo::runtime
