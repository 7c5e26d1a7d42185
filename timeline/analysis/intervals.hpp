// SPDX-License-Identifier: Apache-2.0
// The total length of a set of intervals, and how much of it another set covers. Intervals are not
// kept: when many have been collected, they are summed up and dropped.
#pragma once

#include <map>
#include <vector>

#include "timeline/analysis/model.hpp"

namespace horo::timeline {

class Overlap {
 public:
  void add_first(Interval interval) { add(first_, interval); }

  void add_second(Interval interval) { add(second_, interval); }

  struct Sums {
    double first_ns = 0;  ///< Length of the union of the first set.
    double second_ns = 0;
    double both_ns = 0;
  };

  /// The sums of all intervals; nothing may be called afterwards.
  Sums sums() {
    sum_up();
    return sums_;
  }

 private:
  static constexpr std::size_t kMost = 8192;

  void add(std::vector<Interval>& to, Interval interval) {
    if (interval.to <= interval.from) return;
    to.push_back(interval);
    if (to.size() >= kMost) sum_up();
  }

  void sum_up();

  std::vector<Interval> first_;
  std::vector<Interval> second_;
  Sums sums_;
};

/// How long each rank kept others waiting. Lateness costs nothing while the others compute.
class LatenessCost {
 public:
  void late(int rank, Interval interval);
  void waited(Interval interval);

  struct Sums {
    double late_ns = 0;    ///< Length of the union of the times in which the rank was late.
    double waited_ns = 0;  ///< The part of that in which some rank waited.
  };

  /// The sums by rank; nothing may be called afterwards.
  std::map<int, Sums> sums() {
    sum_up();
    return sums_;
  }

 private:
  static constexpr std::size_t kMost = 65536;

  void sum_up();

  std::map<int, std::vector<Interval>> late_;
  std::vector<Interval> waits_;
  std::size_t held_ = 0;
  std::map<int, Sums> sums_;
};

}  // namespace horo::timeline
