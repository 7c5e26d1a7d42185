// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "base/loop/loop.hpp"
#include "launcher/starter.hpp"
#include "launcher/starters/link/agent_relay.hpp"
#include "launcher/starters/link/fallback.hpp"
#include "launcher/starters/tree/tree_plan.hpp"

namespace horo::launcher {

/// How the hosts of a tree are reached, by their numbers.
struct TreeWays {
  std::function<Result<std::unique_ptr<Carrier>>(std::size_t host)> from_here;
  /// The order to another host's agent, without the times.
  std::function<protocol::Reach(std::size_t host)> from_there;
  Duration connect_timeout{};  ///< Time for another host to connect; 0: no limit.
};

/// Starts agents through other agents, as planned. A host that its parent cannot reach is tried
/// from the host above the parent, and so on, and in the end from the launcher. Outlives its
/// agents. Thread: the loop's.
class TreeStarter {
 public:
  /// `names`: the hosts' names by number, for messages.
  TreeStarter(Loop& loop, TreePlan plan, const std::vector<std::string>& names, TreeWays ways);

  /// Fails: as ways.from_here.
  Result<std::unique_ptr<Agent>> start(std::size_t host, const AgentSpec& spec,
                                       AgentEvents& events);

 private:
  Loop& loop_;
  const TreePlan plan_;
  const TreeWays ways_;
  std::vector<std::shared_ptr<AgentRelay>> relays_;  ///< Through that host; null: no host is.
};

}  // namespace horo::launcher
