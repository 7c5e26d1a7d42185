// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/loop/loop.hpp"
#include "launcher/placement.hpp"
#include "launcher/starter.hpp"

namespace horo::launcher {

struct MpiLaunch {
  std::vector<std::string> command;  ///< mpirun's own, which starts an agent per rank.
  std::string name;                  ///< For people: "mpirun (Open MPI)".
  Environment environment;           ///< Of mpirun, beneath what the starter adds.
  Placement placement;               ///< What `command` asks for.
  bool here = true;                  ///< All hosts are this machine.
  /// A line that mpirun itself has printed, without its end.
  std::function<void(std::string_view)> say;
};

/// Lets mpirun start the ranks: one mpirun under an agent of this machine, and under it an agent
/// per rank, which calls back. mpirun learns of a rank's end only when the launcher lets the rank's
/// agent go, and that is when the whole job has ended: so it kills nobody whom we give a grace, and
/// the first failure is the one that an agent has seen. start() is for the hosts of the placement
/// in their order; with the last mpirun starts. One job. Thread: the loop's.
std::unique_ptr<Starter> make_mpi_starter(Loop& loop, MpiLaunch launch);

}  // namespace horo::launcher
