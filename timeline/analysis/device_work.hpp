// SPDX-License-Identifier: Apache-2.0
// The figures of the work of devices for operations.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "timeline/analysis/intervals.hpp"
#include "timeline/analysis/model.hpp"

namespace horo::timeline {

struct DeviceFigures {
  struct Activity {
    std::uint64_t times = 0;
    double ns = 0;
  };

  std::uint64_t operations = 0;  ///< Number of operations with device times.
  /// Time in which the device worked, on average over the ranks whose device times are known.
  double worked_ns = 0;
  double host_ns = 0;  ///< Time in which such an operation was agreed upon and had not ended.
  std::map<std::string, Activity> activities;    ///< Their number is limited.
  std::map<std::string, std::uint64_t> missing;  ///< Operations without times, by the reason.
};

/// Memory grows with ranks, not with operations. Thread: owner.
class DeviceWorkSums {
 public:
  /// An operation for which a device worked: from the agreement to its end.
  void operation(Interval when);
  void worked(const DeviceWork& work);
  void missing(std::string_view reason);

  /// The figures; nothing may be called afterwards.
  DeviceFigures finish();

 private:
  DeviceFigures figures_;
  Overlap operations_;            ///< The operations, as the first set.
  std::map<int, Overlap> ranks_;  ///< By rank: the work of its device, as the first set.
};

}  // namespace horo::timeline
