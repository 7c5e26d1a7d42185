// SPDX-License-Identifier: Apache-2.0
// The module `cuda`: the memory, streams and events of NVIDIA's devices, or of AMD's.
#include "runtime/backends/module.hpp"

#include "runtime/device/cuda/cuda_device.hpp"

namespace horo::runtime {

namespace {

Status probe() {
  HORO_TRY([[maybe_unused]] const auto* api, machine_api());
  return {};
}

}  // namespace

}  // namespace horo::runtime

HORO_BACKEND_MODULE(.name = "cuda", .probe = &horo::runtime::probe, .make = nullptr,
                    .exchange = nullptr, .open_device = &horo::runtime::open_machine_device);
