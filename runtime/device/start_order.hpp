// SPDX-License-Identifier: Apache-2.0
// Operations of several sets that wait for other ranks on the device itself start in one order,
// that of their places, which all ranks share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace horo::runtime {

/// A set that may have such operations.
class OrderedStarts {
 public:
  static constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();

  OrderedStarts() = default;
  virtual ~OrderedStarts() = default;
  OrderedStarts(const OrderedStarts&) = delete;
  OrderedStarts& operator=(const OrderedStarts&) = delete;

  /// The least place of the operations that it has still to start on a device. kNone: it has none,
  /// and will have none with a place that has been taken by now.
  virtual std::uint64_t first_start(int device) const = 0;
};

/// The sets of a process. Thread: the holder of the progress token.
class StartOrder {
 public:
  void join(const OrderedStarts& set) { sets_.push_back(&set); }

  void leave(const OrderedStarts& set) { std::erase(sets_, &set); }

  /// All operations before `place` have started, but for those of `asking` itself.
  bool may_start(std::uint64_t place, int device, const OrderedStarts& asking) const {
    return std::all_of(sets_.begin(), sets_.end(), [&](const OrderedStarts* set) {
      return set == &asking || set->first_start(device) > place;
    });
  }

 private:
  std::vector<const OrderedStarts*> sets_;
};

}  // namespace horo::runtime
