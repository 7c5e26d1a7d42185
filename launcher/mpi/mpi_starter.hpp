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
  std::vector<std::string>
      command;              ///< The whole mpirun command line; it starts an agent per rank.
  std::string name;         ///< For people: "mpirun (Open MPI)".
  Environment environment;  ///< mpirun's; the starter adds the listener's address.
  Placement placement;      ///< The placement that `command` asks for.
  bool here = true;         ///< All hosts are this machine.
  /// Called with each line that mpirun itself prints, without its end.
  std::function<void(std::string_view)> say;
};

/// Lets mpirun start the ranks: one mpirun under an agent on this machine, and below it an agent
/// per rank, which dials in. mpirun sees a rank end only when its agent ends, and agents end only
/// when the whole job has: so mpirun kills no rank during its grace period, and the first failure
/// is the one that an agent has seen. start() is called for the hosts of the placement in their
/// order; the last call starts mpirun. One job. Thread: the loop's.
std::unique_ptr<Starter> make_mpi_starter(Loop& loop, MpiLaunch launch);

}  // namespace horo::launcher
