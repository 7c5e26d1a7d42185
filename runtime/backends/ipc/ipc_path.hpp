// SPDX-License-Identifier: Apache-2.0
// The path `ipc` between devices: for ranks of one host, by memory that their processes share.
#pragma once

#include <memory>

#include "runtime/backends/device_path.hpp"

namespace horo::runtime {

std::unique_ptr<DevicePath> make_ipc_path();

}  // namespace horo::runtime
