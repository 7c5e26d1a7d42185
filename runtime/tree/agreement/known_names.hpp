// SPDX-License-Identifier: Apache-2.0
// The names of one process set's tensors, as a leader knows them.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/tree/frames/frames.hpp"

namespace horo::runtime::tree {

/// A source of marks: this host, or a child with its subtree.
struct SubtreeSource {
  RankRanges members;
  RankRanges joined;
};

/// Declarations of a tensor that has a number.
struct DeclaredAgain {
  std::uint64_t by = 0;  ///< Bits of the sources that declared it.
  Variants variants;
};

/// A name without a number.
struct UnnumberedName {
  /// Bits of the sources that have it, and the mark of a tensor that was sent up.
  std::uint64_t marks = 0;
  std::uint64_t redeclaring = 0;  ///< Bits of the sources that will declare it again.
  bool again = false;             ///< It was sent up by a number that has been evicted.
  bool whole = false;             ///< All members here declare it; none has joined instead.
  Variants variants;
  TensorId own;
};

/// A name that has a number.
struct NumberedName {
  std::uint32_t number = kNoNumber;
  TensorId own;                       ///< On this host, as of the last submission here.
  std::uint64_t marks = 0;            ///< As in UnnumberedName.
  bool whole = false;                 ///< As in UnnumberedName.
  const std::string* name = nullptr;  ///< Key of `numbers_`.
};

}  // namespace horo::runtime::tree
