// SPDX-License-Identifier: Apache-2.0
// A tree over the numbers 0 ... n - 1 in which every subtree is a run of neighbouring numbers: what
// it names are few ranges, and neighbours that share a host share most of their links. Pure.
#pragma once

#include <vector>

namespace horo {

struct Branch {
  int first = 0;  ///< The child.
  int end = 0;    ///< One past the last number of its subtree.

  friend bool operator==(const Branch&, const Branch&) = default;
};

/// The place of a number: [node, end) is its subtree.
struct TreePlace {
  int node = 0;
  int end = 0;
  int parent = -1;  ///< -1: the root, which is 0.
  int depth = 0;    ///< Links between here and the root.
  std::vector<Branch> children;
};

/// The place of `node` among `count`, with at most `radix` children each.
TreePlace place_of(int node, int count, int radix);

/// Links between the root and the node that is farthest away.
int depth_of(int count, int radix);

}  // namespace horo
