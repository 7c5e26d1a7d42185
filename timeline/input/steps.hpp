// SPDX-License-Identifier: Apache-2.0
// Finds the steps of a training. A step lasts from one submission of a certain tensor to its next
// one. That tensor is the first to be submitted twice; if it stops coming, another takes its place.
// Pure.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <unordered_map>

#include "timeline/analysis/model.hpp"

namespace horo::timeline {

/// Thread: owner. Memory grows with tensors, and is bounded where no tensor comes twice.
class StepFinder {
 public:
  /// Takes one rank's submissions in order of time. Returns the step that ends here, if one does.
  std::optional<Interval> submitted(std::uint64_t tensor, std::int64_t ns) {
    if (seen_.size() > kMostSeen)
      std::erase_if(seen_, [this](const auto& seen) { return first_ != seen.first; });
    auto& seen = seen_[tensor];
    if (seen.step != steps_) seen = {.step = steps_, .times = 0, .last = seen.last};
    const auto before = seen.last;
    seen.last = ns;
    ++seen.times;
    const bool first = first_ == tensor;
    const bool begins = first_ ? seen.times > kMostInStep : before != kNever;
    if (!first && !begins) return std::nullopt;
    // When another tensor takes the place, the time before does not count as a step.
    const bool known = first || !first_;
    first_ = tensor;
    ++steps_;
    // A step with a negative duration means that the clock was set; it is not reported.
    return known && before != kNever && before <= ns ? std::optional(Interval{before, ns})
                                                     : std::nullopt;
  }

 private:
  /// If another tensor comes more often than this without the first one, it takes its place.
  static constexpr std::uint64_t kMostInStep = 8;
  static constexpr std::size_t kMostSeen = 1 << 18;
  static constexpr auto kNever = std::numeric_limits<std::int64_t>::min();

  struct Seen {
    std::uint64_t step = 0;
    std::uint64_t times = 0;  ///< Number of submissions in that step.
    std::int64_t last = kNever;
  };

  std::unordered_map<std::uint64_t, Seen> seen_;
  std::optional<std::uint64_t> first_;
  std::uint64_t steps_ = 0;
};

}  // namespace horo::timeline
