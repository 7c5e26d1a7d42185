// SPDX-License-Identifier: Apache-2.0
// Whether CUDA's driver or HIP's runtime can be used, without starting it in this process: a
// process that has started CUDA cannot fork children that use it.
#pragma once

#include <string>

#include "base/result.hpp"
#include "runtime/device/driver/device_api.hpp"

namespace horo::runtime::cuda {

/// The library that load_driver(file) would use. If no one has started CUDA's driver in this
/// process, a child process starts it and answers. HIP's runtime cannot be asked whether it runs,
/// so one that the program has loaded is started here. Thread: any. Blocks: while the driver
/// starts, for a minute at most. Fails: as load_driver; unavailable (the driver does not answer).
Result<const DeviceApi*> check_driver(const std::string& file);

}  // namespace horo::runtime::cuda
