// SPDX-License-Identifier: Apache-2.0
// Counts how often each rank was last, independently of the number of tensors. Operations that wait
// for their ranks at the same time, as the gradients of a step do, wait for the same lateness: they
// are one occasion. Lateness that is drawn anew begins only after the ranks have met.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "timeline/analysis/model.hpp"

namespace horo::timeline {

/// Takes the operations about in the order of time. Thread: owner. Memory grows with the ranks.
class Occasions {
 public:
  /// `waits`: from the first rank's arrival to the last one's. `late_ns`: how long the last rank
  /// came after the rank before it.
  void add(const std::string& name, Interval waits, int last_rank, std::int64_t late_ns) {
    // An operation that comes again belongs to a later step, even where the steps overlap.
    if (begun_ && (waits.from > to_ || name == first_name_)) close();
    if (!begun_) {
      first_name_ = name;
      to_ = waits.to;
    }
    begun_ = true;
    to_ = std::max(to_, waits.to);
    waited_ns_ += static_cast<double>(waits.to - waits.from);
    if (late_ns > 0) late_[last_rank] += static_cast<double>(late_ns);
  }

  struct Counts {
    std::uint64_t all = 0;
    std::map<int, std::uint64_t> last;  ///< By rank.
  };

  /// Nothing may be added afterwards.
  Counts counts() {
    close();
    return counts_;
  }

 private:
  void close() {
    begun_ = false;
    const double waited = std::exchange(waited_ns_, 0);
    const auto late = std::exchange(late_, {});
    if (late.empty()) return;
    const auto worst = std::max_element(
        late.begin(), late.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    if (worst->second < kLeastShare * waited) return;
    ++counts_.all;
    ++counts_.last[worst->first];
  }

  /// Ranks that come so nearly together, by this share of the wait, are last together. Horovod's
  /// traces show ranks of one cycle microseconds apart, in the order of their numbers.
  static constexpr double kLeastShare = 0.05;

  bool begun_ = false;
  std::int64_t to_ = 0;
  std::string first_name_;
  double waited_ns_ = 0;
  std::map<int, double> late_;  ///< By rank, in this occasion.
  Counts counts_;
};

}  // namespace horo::timeline
