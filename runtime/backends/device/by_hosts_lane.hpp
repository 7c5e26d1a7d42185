// SPDX-License-Identifier: Apache-2.0
// The stream, the pinned memory and the sums between hosts that the by-hosts buckets of one process
// set share. One bucket uses them at a time.
#pragma once

#include <array>
#include <optional>

#include "runtime/backends/device/by_hosts_place.hpp"
#include "runtime/backends/device/host_sum.hpp"
#include "runtime/backends/device/staging/staging_lane.hpp"

namespace horo::runtime {

/// Stretches of a bucket that are between their first and their last step.
inline constexpr std::size_t kByHostsDepth = 3;

/// Owns the stream on which tensors are packed, and the host memory of the sums. Thread: owner.
class ByHostsLane {
 public:
  /// It outlives the lane. Fails: as Device::make_stream; invalid_argument.
  static Result<std::unique_ptr<ByHostsLane>> make(OpenDevice& gpu, const SetPlace& place);
  ~ByHostsLane();
  ByHostsLane(const ByHostsLane&) = delete;
  ByHostsLane& operator=(const ByHostsLane&) = delete;

  const ByHostsPlace& place() const { return place_; }

  OpenDevice& gpu() const { return gpu_; }

  StreamHandle packing() const { return packing_; }

  /// Not those of StagingLane: buckets behind this one could take them all, and would wait for it.
  PinnedSlots& slots() { return slots_; }

  /// It belongs to the stretch with that number.
  HostSum& sum(std::size_t stretch) { return *sums_.at(stretch % kByHostsDepth); }

 private:
  ByHostsLane(OpenDevice& gpu, ByHostsPlace place, StreamHandle packing);

  OpenDevice& gpu_;
  const ByHostsPlace place_;
  const StreamHandle packing_;
  PinnedSlots slots_;
  std::array<std::optional<HostSum>, kByHostsDepth> sums_;
};

}  // namespace horo::runtime
