// SPDX-License-Identifier: Apache-2.0
// The steps of a training: from one time that a tensor is submitted to the next. The tensor is the
// first that comes twice, as long as it does come. Pure.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <unordered_map>

#include "apps/timeline_view/model.hpp"

namespace horo::apps {

/// Thread: owner. Memory: of tensors, bounded where none comes twice.
class StepFinder {
 public:
  /// On one rank, in the order of time. Gives the step that ends here, if one does.
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
    // What came before another tensor took the place was no step of this one.
    const bool known = first || !first_;
    first_ = tensor;
    ++steps_;
    // Unless time ran backwards.
    return known && before != kNever && before <= ns ? std::optional(Interval{before, ns})
                                                     : std::nullopt;
  }

 private:
  /// As often another tensor may come without the first.
  static constexpr std::uint64_t kMostInStep = 8;
  static constexpr std::size_t kMostSeen = 1 << 18;
  static constexpr auto kNever = std::numeric_limits<std::int64_t>::min();

  struct Seen {
    std::uint64_t step = 0;
    std::uint64_t times = 0;  ///< In that step.
    std::int64_t last = kNever;
  };

  std::unordered_map<std::uint64_t, Seen> seen_;
  std::optional<std::uint64_t> first_;
  std::uint64_t steps_ = 0;
};

}  // namespace horo::apps
