// SPDX-License-Identifier: Apache-2.0
// The module `nccl`: NCCL, or RCCL on AMD's devices.
#include "runtime/backends/module.hpp"

#include <cstring>

#include "runtime/backends/nccl/nccl_backend.hpp"
#include "runtime/device/cuda/cuda_device.hpp"

namespace horo::runtime {

namespace {

/// The library that goes with the devices of this machine. They come first: it is large, and of no
/// use without one.
Result<const nccl::Library*> load_library() {
  HORO_TRY(const auto* const api, machine_api());
  return nccl::load(nccl::kAutomatic, api == &cuda::kHip ? nccl::kRccl : nccl::kNccl);
}

Status probe() {
  HORO_TRY([[maybe_unused]] const auto* library, load_library());
  return {};
}

Result<nccl::UniqueId> agree_on_id(const Communicator& c, const nccl::Library& library) {
  const auto deadline = Deadline::in(SteadyClock::instance(), c.start_timeout);
  const auto key = c.name + "/nccl";
  nccl::UniqueId id;
  if (c.position == 0) {
    HORO_TRY_STATUS(library.status(library.get_unique_id(&id), "ncclGetUniqueId"));
    if (c.size() == 1) return id;
    HORO_TRY_STATUS(c.meeting->set(key, {id.bytes.data(), id.bytes.size()}, deadline));
    return id;
  }
  HORO_TRY(const auto text, c.meeting->get(key, deadline));
  if (text.size() != id.bytes.size())
    return fail(Errc::protocol, "'{}' has {} bytes and is not an NCCL id", key, text.size());
  std::memcpy(id.bytes.data(), text.data(), text.size());
  return id;
}

Result<std::unique_ptr<Backend>> make(const Communicator& communicator) {
  HORO_TRY_STATUS(check(communicator));
  HORO_TRY(auto device, open_machine_device(communicator.device));
  HORO_TRY_STATUS(enter_machine_device(communicator.device));
  HORO_TRY(const auto* const library, load_library());
  HORO_TRY(const auto id, agree_on_id(communicator, *library));
  auto gpu = std::make_unique<OpenDevice>(std::move(device));
  auto* const opened = gpu.get();
  return NcclBackend::join(*library, {.gpu = opened,
                                      .owned = std::move(gpu),
                                      .ids = {id},
                                      .position = communicator.position,
                                      .ranks = communicator.size(),
                                      .packs = opened->device().packer() != nullptr});
}

}  // namespace

}  // namespace horo::runtime

HORO_BACKEND_MODULE(.name = "nccl", .probe = &horo::runtime::probe, .make = &horo::runtime::make,
                    .exchange = nullptr, .open_device = nullptr);
