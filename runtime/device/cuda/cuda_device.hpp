// SPDX-License-Identifier: Apache-2.0
// CUDA's runtime as a Device.
#pragma once

#include <memory>

#include "runtime/device/device.hpp"

namespace horo::runtime {

/// Whether there is a driver and a device. Fails: unavailable (which of the two is missing).
Status probe_cuda();

/// Fails: as probe_cuda(); not_found (no such device); io.
Result<std::unique_ptr<Device>> open_cuda_device(int index);

}  // namespace horo::runtime
