// SPDX-License-Identifier: Apache-2.0
#include "base/tree/run_tree.hpp"

#include <algorithm>

#include "base/result.hpp"

namespace horo {

namespace {

/// Splits what is left of [node, end) without `node` into at most `radix` runs of nearly one size.
std::vector<Branch> split(int node, int end, int radix) {
  std::vector<Branch> children;
  const int rest = end - node - 1;
  const int parts = std::min(rest, radix);
  int at = node + 1;
  for (int i = 0; i < parts; ++i) {
    const int size = rest / parts + (i < rest % parts ? 1 : 0);
    children.push_back({.first = at, .end = at + size});
    at += size;
  }
  return children;
}

}  // namespace

TreePlace place_of(int node, int count, int radix) {
  TreePlace place{.node = 0, .end = count, .children = split(0, count, radix)};
  while (place.node != node) {
    const auto child = std::find_if(place.children.begin(), place.children.end(),
                                    [node](const Branch& c) { return node < c.end; });
    HORO_CHECK(child != place.children.end() && node >= child->first);
    place = {.node = child->first,
             .end = child->end,
             .parent = place.node,
             .depth = place.depth + 1,
             .children = split(child->first, child->end, radix)};
  }
  return place;
}

int depth_of(int count, int radix) {
  // The first child's subtree is never smaller than its siblings'.
  int depth = 0;
  for (int size = count; size > 1; ++depth) size = (size - 1 + radix - 1) / radix;
  return depth;
}

}  // namespace horo
