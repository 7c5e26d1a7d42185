// SPDX-License-Identifier: Apache-2.0
// The streams and the host memory by which a set moves tensors between its device and the host.
#pragma once

#include <span>

#include "runtime/backends/device/pinned_slots.hpp"
#include "runtime/device/open_device.hpp"

namespace horo::runtime {

/// One stream in each direction, so that copies to the host overlap those to the device. Thread:
/// owner.
class StagingLane {
 public:
  StagingLane() = default;
  ~StagingLane();
  StagingLane(const StagingLane&) = delete;
  StagingLane& operator=(const StagingLane&) = delete;

  /// The set's device, the same in all calls. Fails: as Device::make_stream.
  Status use(OpenDevice& gpu);

  /// Null: this rank's tensors are in host memory.
  OpenDevice* gpu() const { return gpu_; }

  StreamHandle to_host() const { return to_host_; }

  StreamHandle to_device() const { return to_device_; }

  PinnedSlots& slots() { return slots_; }

 private:
  OpenDevice* gpu_ = nullptr;
  StreamHandle to_host_ = nullptr;
  StreamHandle to_device_ = nullptr;
  PinnedSlots slots_;
};

}  // namespace horo::runtime
