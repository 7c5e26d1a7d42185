// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "runtime/tree/agreement/arrivals.hpp"
#include "runtime/tree/frames/frames.hpp"

namespace horo::runtime::tree {

/// Tensors and ranks that have become complete in a subtree. Goes up or, at the root, into its log.
struct SubtreeUpdate {
  Ids ready;
  std::vector<CarriedTensor> carried;  ///< Ready as well, with the inputs of the whole subtree.
  std::vector<Declaration> declared;
  RankRanges joined;
  RankRanges leaving;
  std::vector<ArrivalsOf> arrivals;  ///< For all these tensors.

  bool empty() const {
    return ready.empty() && carried.empty() && declared.empty() && joined.empty() &&
           leaving.empty();
  }
};

}  // namespace horo::runtime::tree
