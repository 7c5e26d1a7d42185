// SPDX-License-Identifier: Apache-2.0
// What the parts of one leader share: its parameters and its place among the hosts.
#pragma once

#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/strong.hpp"
#include "runtime/tree/agreement/host_tree.hpp"
#include "runtime/tree/agreement/root_log.hpp"

namespace horo::runtime::tree {

struct LeaderParams {
  int host = 0;
  int radix = 16;
  Epoch epoch{1};
  Duration heartbeat_timeout = std::chrono::seconds(5);
  CutRules rules;
  std::string settings{};  ///< Knobs that select backends; the same on all hosts.
};

/// Immutable. `hosts` outlives it.
struct LeaderContext {
  LeaderContext(const LeaderParams& leader_params, const std::vector<HostRanks>& all_hosts)
      : params(leader_params),
        hosts(all_hosts),
        place(place_of(params.host, static_cast<int>(hosts.size()), params.radix)) {}

  bool is_root() const { return place.parent < 0; }

  const HostRanks& own_host() const { return hosts[static_cast<std::size_t>(place.node)]; }

  const LeaderParams params;
  const std::vector<HostRanks>& hosts;
  const TreePlace place;
};

}  // namespace horo::runtime::tree
