// SPDX-License-Identifier: Apache-2.0
// How long one set of intervals is, and how much of it another covers, without keeping them: what
// lies far enough behind is summed up and forgotten.
#pragma once

#include <map>
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

/// Of several ranks, how long each kept others waiting: lateness costs nothing while they compute.
class Blame {
 public:
  void late(int rank, Interval interval);
  void waited(Interval interval);

  struct Sums {
    double late_ns = 0;    ///< Of the union.
    double waited_ns = 0;  ///< In which somebody waited.
  };

  /// By rank. The last call.
  std::map<int, Sums> sums() {
    settle();
    return sums_;
  }

 private:
  static constexpr std::size_t kMost = 65536;

  void settle();

  std::map<int, std::vector<Interval>> late_;
  std::vector<Interval> waits_;
  std::size_t held_ = 0;
  std::map<int, Sums> sums_;
};

}  // namespace horo::apps
