// SPDX-License-Identifier: Apache-2.0
// The module `cuda`: the memory, streams and events of NVIDIA's devices.
#include "runtime/backends/module.hpp"

#include "runtime/device/cuda/cuda_device.hpp"

HORO_BACKEND_MODULE(.name = "cuda", .probe = &horo::runtime::probe_cuda, .make = nullptr,
                    .exchange = nullptr, .open_device = &horo::runtime::open_cuda_device);
