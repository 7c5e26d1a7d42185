// SPDX-License-Identifier: Apache-2.0
// How each host's agent is started: decided before anything is, so that --dry-run can tell.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apps/run/batch_ways.hpp"
#include "base/knobs/settings.hpp"
#include "base/loop/loop.hpp"
#include "launcher/placement.hpp"
#include "launcher/starter.hpp"
#include "launcher/starters/ssh/ssh_route.hpp"
#include "launcher/starters/tree/tree_plan.hpp"

namespace horo::apps {

enum class Way : std::uint8_t { local, ssh, ssh_program, batch };

struct HostWay {
  Way way = Way::local;
  launcher::SshRoute route;  ///< Of the two by ssh.
  BatchWay batch{};          ///< Of the one by a batch system, or an rsh agent.
  std::string why{};         ///< This way and no other; empty: nothing to say.
};

/// Everything needed to start agents on the hosts of a plan.
struct Ways {
  std::vector<HostWay> hosts;  ///< By host of the placement.
  launcher::SshWishes ssh;
  launcher::TreePlan tree;  ///< Who starts whose agent.

  /// Whether any host is another than this machine.
  bool leave_this_machine() const;
  /// Whether any host is this machine.
  bool stay_here() const;
};

/// Blocks: for the ssh configuration of the hosts, some seconds at most. Fails: as find_ssh_routes
/// does, and invalid_argument, for hosts that a batch system does not have.
Result<Ways> choose_ways(const launcher::Placement& placement, const Settings& settings,
                         const std::function<const char*(const char*)>& lookup);

/// "ssh", "local, srun": the ways that occur.
std::string names_of(const Ways& ways);

/// "by ssh as root to h1 (10.0.0.1), port 22", for --dry-run.
std::string describe(const HostWay& way);

/// "2 levels, at most 32 hosts at each host": the shape of the tree; empty: there is none.
std::string describe_tree(const Ways& ways);

/// Starts each host's agent in its way, through those hosts that the tree has between. A host that
/// cannot reach another within `patience` leaves it to who is above. `loop` outlives it, `ways` is
/// copied.
std::unique_ptr<launcher::Starter> make_ways_starter(Loop& loop,
                                                     const launcher::Placement& placement,
                                                     const Ways& ways, Duration patience);

}  // namespace horo::apps
