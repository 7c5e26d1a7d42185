// SPDX-License-Identifier: Apache-2.0
#include "timeline/analysis/intervals.hpp"

#include <algorithm>
#include <utility>

namespace horo::timeline {

namespace {

/// Sorts the intervals and joins those that touch.
std::vector<Interval> join(std::vector<Interval> all) {
  std::sort(all.begin(), all.end(),
            [](const Interval& a, const Interval& b) { return a.from < b.from; });
  std::vector<Interval> joined;
  for (const auto& interval : all) {
    if (!joined.empty() && interval.from <= joined.back().to) {
      joined.back().to = std::max(joined.back().to, interval.to);
    } else {
      joined.push_back(interval);
    }
  }
  return joined;
}

double length(const std::vector<Interval>& intervals) {
  double sum = 0;
  for (const auto& interval : intervals) sum += static_cast<double>(interval.to - interval.from);
  return sum;
}

/// Length of the intersection of two joined sets.
double common(const std::vector<Interval>& a, const std::vector<Interval>& b) {
  double sum = 0;
  for (std::size_t i = 0, k = 0; i < a.size() && k < b.size();) {
    const auto from = std::max(a[i].from, b[k].from);
    const auto to = std::min(a[i].to, b[k].to);
    if (to > from) sum += static_cast<double>(to - from);
    if (a[i].to < b[k].to) {
      ++i;
    } else {
      ++k;
    }
  }
  return sum;
}

}  // namespace

void Overlap::sum_up() {
  const auto a = join(std::exchange(first_, {}));
  const auto b = join(std::exchange(second_, {}));
  sums_.first_ns += length(a);
  sums_.second_ns += length(b);
  sums_.both_ns += common(a, b);
}

void LatenessCost::late(int rank, Interval interval) {
  if (interval.to <= interval.from) return;
  late_[rank].push_back(interval);
  if (++held_ >= kMost) sum_up();
}

void LatenessCost::waited(Interval interval) {
  waits_.push_back(interval);
  if (++held_ >= kMost) sum_up();
}

void LatenessCost::sum_up() {
  const auto waits = join(std::exchange(waits_, {}));
  for (auto& [rank, intervals] : std::exchange(late_, {})) {
    const auto late = join(std::move(intervals));
    auto& sums = sums_[rank];
    sums.late_ns += length(late);
    sums.waited_ns += common(late, waits);
  }
  held_ = 0;
}

}  // namespace horo::timeline
