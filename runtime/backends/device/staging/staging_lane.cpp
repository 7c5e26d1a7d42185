// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/device/staging/staging_lane.hpp"

#include <algorithm>

namespace horo::runtime {

StagingLane::~StagingLane() {
  for (const auto& streams : devices_) {
    streams.gpu->device().destroy_stream(streams.to_host);
    streams.gpu->device().destroy_stream(streams.to_device);
  }
}

const StagingStreams* StagingLane::of(int device) const {
  const auto found = std::find_if(
      devices_.begin(), devices_.end(),
      [device](const StagingStreams& streams) { return streams.gpu->index() == device; });
  return found == devices_.end() ? nullptr : &*found;
}

Status StagingLane::use(OpenDevice& gpu) {
  if (of(gpu.index()) != nullptr) return {};
  HORO_TRY(auto* const to_host, gpu.device().make_stream());
  auto back = gpu.device().make_stream();
  if (!back) {
    gpu.device().destroy_stream(to_host);
    return Failure(back.error());
  }
  devices_.push_back({.gpu = &gpu, .to_host = to_host, .to_device = *back});
  return {};
}

}  // namespace horo::runtime
