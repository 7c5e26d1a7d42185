// SPDX-License-Identifier: Apache-2.0
// A starter for agents that another system starts: mpirun, jsrun, Spark, Ray, a batch script.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/loop/loop.hpp"
#include "base/worker_env.hpp"
#include "launcher/placement.hpp"
#include "launcher/starter.hpp"
#include "launcher/starters/dial_in/agent_listener.hpp"

namespace horo::launcher {

/// Where ranks get their variables and the address of their rendezvous from: the launcher, or the
/// system that starts their agents (mpirun passes variables on, and ranks meet through MPI).
enum class RankVariables : std::uint8_t { from_launcher, from_starting_system };

struct DialInJob {
  Placement placement;     ///< The ranks that are to dial in, one agent each.
  std::string started_by;  ///< The other system, for messages: "mpirun (Open MPI)".
  ListenOn listen_on = ListenOn::all_addresses;
  RankVariables variables = RankVariables::from_launcher;
};

/// Lets the other system start one `horo-agent --dial-in` per rank, each with `variables` in its
/// environment, and with its rank (see read_rank_claim). Called once. Blocks: must not.
using LaunchAgents = std::function<Status(const Environment& variables)>;

/// start() is called for the hosts of the placement, in their order. With the last one the starter
/// listens and calls `launch`. An agent that claims another place than the placement gives it fails
/// the job. Each agent keeps its connection until all have finished, so that the other system does
/// not see the first rank's end before the launcher does. One job. Thread: the loop's.
std::unique_ptr<Starter> make_dial_in_starter(Loop& loop, DialInJob job, LaunchAgents launch);

}  // namespace horo::launcher
