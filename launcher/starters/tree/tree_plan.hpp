// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace horo::launcher {

/// Who starts whose agent, by host: another host's agent, or none: the launcher.
struct TreePlan {
  std::vector<std::optional<std::size_t>> parents;
  int levels = 0;  ///< Agents between the launcher and the farthest host, that one included.

  friend bool operator==(const TreePlan&, const TreePlan&) = default;
};

/// The hosts that are in the tree, by their numbers in `takes_part`, level by level: each node has
/// `fanout` children at most, and the last level is spread evenly, so that no host has much more to
/// do than another. All others are the launcher's own affair. Pure.
TreePlan plan_tree(const std::vector<bool>& takes_part, std::size_t fanout);

}  // namespace horo::launcher
