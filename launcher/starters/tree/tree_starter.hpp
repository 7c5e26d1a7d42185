// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "base/loop/loop.hpp"
#include "launcher/starter.hpp"
#include "launcher/starters/link/fallback.hpp"
#include "launcher/starters/link/relay.hpp"
#include "launcher/starters/tree/tree_plan.hpp"

namespace horo::launcher {

/// How the hosts of a tree are reached, by their number.
struct TreeWays {
  std::function<Result<std::unique_ptr<Carrier>>(std::size_t host)> from_here;
  /// What another host's agent needs to know, but for times.
  std::function<protocol::Reach(std::size_t host)> from_there;
  Duration patience{};  ///< For another host to connect to one; 0: as long as it takes.
};

/// Starts agents through agents, as the plan has it. A host that another cannot reach is left to
/// who is above that one, and at last to us. Outlives its agents. Thread: the loop's.
class TreeStarter {
 public:
  /// `names`: of the hosts, by number, for messages.
  TreeStarter(Loop& loop, TreePlan plan, const std::vector<std::string>& names, TreeWays ways);

  /// Fails: as ways.from_here.
  Result<std::unique_ptr<Agent>> start(std::size_t host, const AgentSpec& spec,
                                       AgentEvents& events);

 private:
  Loop& loop_;
  const TreePlan plan_;
  const TreeWays ways_;
  std::vector<std::shared_ptr<Relay>> relays_;  ///< Through that host; null: nobody.
};

}  // namespace horo::launcher
