// SPDX-License-Identifier: Apache-2.0
#include "launcher/starters/tree/tree_plan.hpp"

#include <algorithm>

namespace horo::launcher {

TreePlan plan_tree(const std::vector<bool>& takes_part, std::size_t fanout) {
  TreePlan plan{.parents = std::vector<std::optional<std::size_t>>(takes_part.size()), .levels = 1};
  std::vector<std::size_t> hosts;
  for (std::size_t host = 0; host < takes_part.size(); ++host) {
    if (takes_part[host]) hosts.push_back(host);
  }
  std::size_t above = 0;  // Begin of the level above; its children follow it.
  std::size_t begin = std::min(hosts.size(), fanout);
  while (begin < hosts.size()) {
    const auto parents = begin - above;
    // No overflow: numbers of hosts and children are small.
    const auto end = std::min(hosts.size(), begin + parents * fanout);
    for (auto i = begin; i < end; ++i)
      plan.parents[hosts[i]] = hosts[above + (i - begin) % parents];
    above = begin;
    begin = end;
    ++plan.levels;
  }
  return plan;
}

}  // namespace horo::launcher
