// SPDX-License-Identifier: Apache-2.0
// How backends measure when a device works for a bucket.
#pragma once

#include "runtime/bucket/backend.hpp"
#include "runtime/device/open_device.hpp"

namespace horo::runtime {

/// The timer of a bucket with this outcome, which may be null. It measures where a timeline asks
/// for times.
inline PhaseTimer timer_of(OpenDevice& gpu, const DeviceOutcome* outcome) {
  if (outcome == nullptr || outcome->times == nullptr) [[likely]]
    return {};
  return PhaseTimer(&gpu.clock());
}

/// Takes the timer's times, when the host has seen that the device has passed them.
inline void read_times(PhaseTimer& timer, const DeviceOutcome* outcome) {
  if (outcome != nullptr && outcome->times != nullptr) [[unlikely]]
    timer.read(*outcome->times);
}

}  // namespace horo::runtime
