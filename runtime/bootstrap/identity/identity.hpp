// SPDX-License-Identifier: Apache-2.0
// The rank of this process, as far as its environment says. Every launcher has variables of its own
// for that; they are tried from the innermost launcher outwards.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/worker_env.hpp"

namespace horo::runtime::bootstrap {

/// Like getenv.
using Lookup = std::function<const char*(const char*)>;

/// The launcher that started this process, in the order in which launchers are tried. `horo run`
/// and variables set by hand come first, because nothing else sets those variables. torchrun starts
/// ranks inside of what mpirun or srun started; mpirun uses srun to reach other hosts; so Slurm
/// comes last.
enum class LauncherKind : std::uint8_t {
  horo_run,
  by_hand,
  torchrun,
  open_mpi,
  pmi,
  slurm,
  nobody
};

/// For messages: "horo run", "torchrun", ...
std::string_view name(LauncherKind launcher);

struct Identity {
  LauncherKind launcher = LauncherKind::nobody;
  WorkerIdentity
      worker;  ///< Size 1 without a launcher; local numbers are valid only if `local_known`.
  bool local_known = true;  ///< Which ranks share this host, and this rank's place among them.

  /// Tells this job's ranks on this host from those of every other job that runs at the same time.
  /// Empty: the environment does not say.
  std::string meeting_place;
  /// An MPI has started it, and beside it an agent of `horo run --mpi` watches this rank alone:
  /// `worker` has that agent's board.
  bool watched = false;
  int pmi_fd = -1;  ///< This rank's connection to MPICH's or Slurm's process manager; -1: none.
};

/// Variables that contradict each other, half of a pair, and numbers that make no sense are errors,
/// never a guess: a rank that takes itself for the only one would train alone. A batch script's
/// shell is no rank although it has SLURM_PROCID and SLURM_NTASKS: only tasks of a step have
/// SLURM_STEP_*. Pure. Fails: invalid_argument, naming variables and values.
Result<Identity> read_identity(const Lookup& lookup);

/// How many tasks Slurm's "2(x3),1" puts on node `node`. Fails: invalid_argument.
Result<int> slurm_tasks_on(std::string_view tasks_per_node, int node);

}  // namespace horo::runtime::bootstrap
