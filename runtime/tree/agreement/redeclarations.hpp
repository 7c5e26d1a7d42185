// SPDX-License-Identifier: Apache-2.0
// Which sources have to declare tensors again. A source does so for each tensor that it reported by
// a number which was evicted. Until the last of these declarations has come, ranks that join or
// leave are held back, because they reported all their tensors before they joined or left.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/tree/frames/rank_ranges.hpp"

namespace horo::runtime::tree {

/// Thread: owner.
class Redeclarations {
 public:
  /// Ranks of a source that join or leave.
  struct HeldBack {
    std::size_t source = 0;
    RankRanges ranks;
    bool leaves = false;
  };

  void add_source() { expected_.push_back(0); }

  /// One more tensor of `source` will be declared again.
  void expect(std::size_t source) {
    ++expected_[source];
    ++total_;
  }

  /// A declaration marked `again` has come; false if none was expected.
  bool take(std::size_t source) {
    if (expected_[source] == 0) return false;
    --expected_[source];
    --total_;
    return true;
  }

  bool pending() const { return total_ != 0; }

  void hold_back(HeldBack ranks) { held_back_.push_back(std::move(ranks)); }

  /// The ranks held back, if nothing is pending any more.
  std::vector<HeldBack> release() {
    if (pending()) return {};
    return std::exchange(held_back_, {});
  }

 private:
  std::vector<std::uint32_t> expected_;  ///< By source.
  std::uint32_t total_ = 0;
  std::vector<HeldBack> held_back_;
};

}  // namespace horo::runtime::tree
