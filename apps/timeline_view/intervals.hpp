// SPDX-License-Identifier: Apache-2.0
// How long one set of intervals is, and how much of it another covers, without keeping them: what
// lies far enough behind is summed up and forgotten.
#pragma once

#include <vector>

#include "apps/timeline_view/model.hpp"

namespace horo::apps {

class Overlap {
 public:
  void add_first(Interval interval) { add(first_, interval); }

  void add_second(Interval interval) { add(second_, interval); }

  struct Sums {
    double first_ns = 0;  ///< Of the union.
    double second_ns = 0;
    double both_ns = 0;
  };

  /// Of all that was added. The last call.
  Sums sums() {
    settle();
    return sums_;
  }

 private:
  static constexpr std::size_t kMost = 8192;

  void add(std::vector<Interval>& to, Interval interval) {
    if (interval.to <= interval.from) return;
    to.push_back(interval);
    if (to.size() >= kMost) settle();
  }

  void settle();

  std::vector<Interval> first_;
  std::vector<Interval> second_;
  Sums sums_;
};

}  // namespace horo::apps
