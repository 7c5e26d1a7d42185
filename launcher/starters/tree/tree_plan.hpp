// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace horo::launcher {

/// For each host, the host whose agent starts its agent; nullopt: the launcher starts it.
struct TreePlan {
  std::vector<std::optional<std::size_t>> parents;
  int levels = 0;  ///< Number of agents on the longest way from the launcher to a host.

  friend bool operator==(const TreePlan&, const TreePlan&) = default;
};

/// Plans a tree of the hosts that are true in `takes_part`, level by level. Each node has at most
/// `fanout` children, and the last level is spread evenly, so that all hosts have about the same
/// load. The launcher starts the agents of all other hosts itself. Pure.
TreePlan plan_tree(const std::vector<bool>& takes_part, std::size_t fanout);

}  // namespace horo::launcher
