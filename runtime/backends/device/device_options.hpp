// SPDX-License-Identifier: Apache-2.0
// What sets need for tensors in device memory.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "base/clock.hpp"
#include "base/knobs/choices.hpp"
#include "runtime/backends/device_path.hpp"
#include "runtime/bucket/backend.hpp"
#include "runtime/device/open_device.hpp"

namespace horo::runtime {

/// This rank's place in the set.
struct SetPlace {
  int position = 0;
  std::vector<Rank> ranks;
  std::vector<int> hosts;  ///< By position: ranks with the same number share a host.
  /// The least place larger than its argument of what the set's log still has for this rank, see
  /// StartPlaces::first_after. Null: buckets have no places.
  std::function<std::uint64_t(std::uint64_t)> first_after{};

  int size() const { return static_cast<int>(ranks.size()); }

  bool spans_hosts() const {
    return std::any_of(hosts.begin(), hosts.end(), [this](int host) { return host != hosts[0]; });
  }
};

/// Makes the paths for one set, the best first. All members get the same ones, in the same order.
using DevicePaths = std::function<std::vector<std::unique_ptr<DevicePath>>(const SetPlace&)>;

/// Thread: immutable; `devices` and `paths` may be used by any.
struct DeviceOptions {
  Devices* devices = nullptr;  ///< They outlive the sets. Null: all tensors are in host memory.
  DevicePaths paths{};
  GpuOperations wanted = GpuOperations::automatic;
  Duration start_timeout = std::chrono::seconds(30);
  Duration timeout{};
};

}  // namespace horo::runtime
