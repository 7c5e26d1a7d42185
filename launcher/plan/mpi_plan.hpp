// SPDX-License-Identifier: Apache-2.0
// Jobs whose ranks mpirun starts. jsrun_plan.hpp does the same for jsrun.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/worker_env.hpp"
#include "launcher/mpi/mpi_kind.hpp"
#include "launcher/mpi/mpirun_command.hpp"
#include "launcher/placement.hpp"
#include "launcher/plan/job_request.hpp"

namespace horo::launcher {

/// Facts about the mpirun or jsrun that starts the ranks.
struct MpiFacts {
  std::string program;               ///< Path of mpirun or jsrun.
  std::string agent;                 ///< Path of horo-agent.
  MpiKind kind = MpiKind::open_mpi;  ///< mpirun only.
  int cpus = 0;                      ///< jsrun only: hardware threads per host; 0: not needed.
  bool root = false;                 ///< This process runs as root.
};

/// How mpirun or jsrun is called.
struct MpiPlan {
  std::string program;  ///< "mpirun" or "jsrun".
  std::string name;     ///< The same with its MPI: "mpirun (Open MPI)".
  MpiCommand command;
  std::string erf;          ///< Content of jsrun's resource file; empty: it needs none.
  Environment environment;  ///< The environment of mpirun or jsrun itself.
  bool here = true;         ///< All hosts are this machine.
};

/// Blocks: for the answer of `mpirun --version`.
/// Fails: not_found (no mpirun, no horo-agent); as ask_for_mpi and check_rank_order.
Result<MpiFacts> probe_mpirun(const JobRequest& request, const Placement& placement);

/// `environment`: what the ranks inherit. `cores`: usable on this machine. Pure.
/// Fails: as split_words and compose_mpirun.
Result<MpiPlan> plan_mpirun(const JobRequest& request, const MpiFacts& facts,
                            const Placement& placement, const Environment& environment, int cores);

/// mpirun and jsrun number ranks host by host: each host's ranks are consecutive. Fails:
/// unsupported, when `placement` differs from that; `flag` (--mpi, --jsrun) is for the message.
Status check_rank_order(const Placement& placement, std::string_view flag);

/// `environment` without the variables by which an MPI describes another rank.
Environment without_rank_variables(Environment environment);

}  // namespace horo::launcher
