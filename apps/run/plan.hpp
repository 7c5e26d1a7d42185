// SPDX-License-Identifier: Apache-2.0
// Everything that is decided before anything is started.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/common/plan_file.hpp"
#include "apps/common/run_invocation.hpp"
#include "apps/run/ways.hpp"
#include "launcher/binding/binding.hpp"
#include "launcher/mpi/command_line.hpp"
#include "launcher/output/output.hpp"
#include "launcher/placement.hpp"
#include "launcher/starter.hpp"

namespace horo::apps {

/// What is different when mpirun or jsrun starts the ranks.
struct MpiPlan {
  std::string program;  ///< "mpirun" or "jsrun".
  std::string name;     ///< The same with its kind: "mpirun (Open MPI)".
  launcher::MpiCommand command;
  std::string erf;          ///< jsrun's resource file; empty: it needs none.
  Environment environment;  ///< Of mpirun.
  bool here = true;         ///< All hosts are this machine.
};

struct Plan {
  std::string job_id;
  std::string program;     ///< The file that the command's first word means.
  std::string hosts_from;  ///< Who named the hosts, and why they were asked.
  launcher::Placement placement;
  Ways ways;  ///< To its hosts.
  /// By host; nothing: another machine, whose agent will see.
  std::vector<std::optional<launcher::HostParts>> parts;
  BindTo bind_to = BindTo::none;  ///< Of all hosts, as the agents' is.
  GpuMode gpus = GpuMode::off;
  std::vector<launcher::AgentSpec> agents;  ///< By host; without the rendezvous' address.
  launcher::OutputOptions output;
  Environment common;  ///< What all ranks get beside what they inherit and who they are.
  int threads = 0;     ///< Their OMP_NUM_THREADS, among `common`; 0: what the user has.
  std::optional<MpiPlan> mpi;
};

/// What the plan needs of the process.
struct PlanContext {
  const char* const* environment = nullptr;  ///< As environ.
  std::string directory;                     ///< Working directory of the ranks.
  std::string program;                       ///< As find_program found it.
  int cores = 1;                             ///< Usable on this machine.
  std::optional<PlanFile> file{};            ///< What --plan names: hosts and ranks are its.
  int attempt = 0;                           ///< How often the job was started before.
  std::vector<std::string> lost{};           ///< Hosts to do without.
};

/// The hosts of a plan may be anywhere. Blocks: for files and programs that
/// name hosts. Fails: as sources, place,
/// TagFormat and free_ports do.
Result<Plan> make_plan(const RunInvocation& invocation, const PlanContext& context);

/// What of `plan` goes into a file, and comes back out of one.
PlanFile file_of(const Plan& plan);

/// What of its host the ranks of host number `host` get, in a line, for people.
std::string describe_parts(const Plan& plan, std::size_t host);

/// "; by ssh as root to h1, port 22, from host h0"; empty: it is this machine.
std::string describe_way(const Plan& plan, std::size_t host);

/// For --dry-run.
std::string plan_text(const Plan& plan);
std::string plan_json(const Plan& plan);

}  // namespace horo::apps
