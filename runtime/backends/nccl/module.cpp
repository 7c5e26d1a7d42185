// SPDX-License-Identifier: Apache-2.0
// The module `nccl`.
#include "runtime/backends/module.hpp"

#include "runtime/backends/nccl/nccl_backend.hpp"
#include "runtime/device/cuda/cuda_device.hpp"

namespace horo::runtime {

namespace {

/// The device first: NCCL's library is large, and of no use without one.
Status probe() {
  HORO_TRY_STATUS(probe_cuda());
  HORO_TRY([[maybe_unused]] const auto* library, nccl::load());
  return {};
}

Result<std::unique_ptr<Backend>> make(const Communicator& communicator) {
  HORO_TRY(auto device, open_cuda_device(communicator.device));
  HORO_TRY_STATUS(enter_cuda_device(communicator.device));
  return NcclBackend::make(communicator, std::move(device));
}

}  // namespace

}  // namespace horo::runtime

HORO_BACKEND_MODULE(.name = "nccl", .probe = &horo::runtime::probe, .make = &horo::runtime::make,
                    .exchange = nullptr, .open_device = nullptr);
