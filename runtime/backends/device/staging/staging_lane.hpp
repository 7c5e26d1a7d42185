// SPDX-License-Identifier: Apache-2.0
// The streams and the host memory by which a set moves tensors between its devices and the host.
#pragma once

#include <deque>

#include "runtime/backends/device/staging/pinned_slots.hpp"
#include "runtime/device/open_device.hpp"

namespace horo::runtime {

/// One stream in each direction, so that copies to the host overlap those to the device.
struct StagingStreams {
  OpenDevice* gpu = nullptr;
  StreamHandle to_host = nullptr;
  StreamHandle to_device = nullptr;
};

/// Thread: owner.
class StagingLane {
 public:
  StagingLane() = default;
  ~StagingLane();
  StagingLane(const StagingLane&) = delete;
  StagingLane& operator=(const StagingLane&) = delete;

  /// Makes the streams of a device that has none. Fails: as Device::make_stream.
  Status use(OpenDevice& gpu);

  /// The device that was used first. Null: this rank's tensors are in host memory.
  OpenDevice* gpu() const { return devices_.empty() ? nullptr : devices_.front().gpu; }

  /// The streams of that device. Only where there is one.
  const StagingStreams& first() const { return devices_.front(); }

  /// The streams of a device, which stay where they are; null: use() has not succeeded for it.
  const StagingStreams* of(int device) const;

  PinnedSlots& slots() { return slots_; }

 private:
  std::deque<StagingStreams> devices_;
  PinnedSlots slots_;
};

}  // namespace horo::runtime
