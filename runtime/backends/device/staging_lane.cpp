// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/device/staging_lane.hpp"

namespace horo::runtime {

StagingLane::~StagingLane() {
  if (gpu_ == nullptr) return;
  gpu_->device().destroy_stream(to_host_);
  gpu_->device().destroy_stream(to_device_);
}

Status StagingLane::use(OpenDevice& gpu) {
  if (gpu_ != nullptr) return {};
  HORO_TRY(to_host_, gpu.device().make_stream());
  auto back = gpu.device().make_stream();
  if (!back) {
    gpu.device().destroy_stream(to_host_);
    return Failure(back.error());
  }
  to_device_ = *back;
  gpu_ = &gpu;
  return {};
}

}  // namespace horo::runtime
