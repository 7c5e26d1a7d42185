// SPDX-License-Identifier: Apache-2.0
// A rank whose tensors are on two devices.
#pragma once

#include "tests/device_path/gpu.hpp"

namespace horo::tests {

/// Runs drawn collectives, each rank with each tensor on device 0 or 1 as it likes: `arguments[1]`
/// seeds from `arguments[0]` on. Then buckets with a tensor on each device, without and with a copy
/// that fails. `gpu` is device 0.
int two_devices(const Gpu& gpu, char** arguments);

/// A tensor on another device than the set's first one is an error that names both and the way out.
int second_device(const Gpu& gpu, char** arguments);

}  // namespace horo::tests
