// SPDX-License-Identifier: Apache-2.0
// The facts that a plan depends on: hosts, devices, ports, programs and routes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/kv/auth.hpp"
#include "discovery/search/find_hosts.hpp"
#include "launcher/binding/binding.hpp"
#include "launcher/placement.hpp"
#include "launcher/plan/job_request.hpp"
#include "launcher/plan/mpi_plan.hpp"
#include "launcher/plan/start_plan.hpp"

namespace horo::launcher {

struct JobFacts {
  std::optional<ElasticSize> elastic{};  ///< Empty: the job is not elastic.
  /// All hosts that an elastic job may use, also those without ranks in the placement.
  discovery::HostSet offered{};
  bool offer_may_change = false;  ///< The source of `offered` is to be asked again and again.
  Duration offer_pause = std::chrono::seconds(1);  ///< Then: between two questions.
  std::string hosts_from;    ///< The source of the host list and why it was chosen, for people.
  Placement placement;       ///< Where each rank goes; the other facts are about these hosts.
  std::vector<bool> local;   ///< By host, whether it is this machine.
  std::string machine_name;  ///< The name by which other hosts know this machine.
  int cores = 1;             ///< Usable on this machine.
  std::string program;       ///< The file that the command's first word means.
  std::optional<Error> program_missing;  ///< Why `program` cannot be executed on this machine.

  BindTo bind_to = BindTo::none;  ///< The binding that `parts` was asked for.
  GpuMode gpus = GpuMode::off;    ///< Likewise.
  /// By host; nothing: another machine, whose agent decides.
  std::vector<std::optional<HostParts>> parts;

  std::vector<int> ports;  ///< Free on this machine: one more than the fullest host's ranks.
  std::string loopback_interface;  ///< Empty: there is none.
  std::string job_id;              ///< Random.
  kv::Secret secret{};             ///< Random.
  StartPlan starts;                ///< How each host's agent can be started.
  std::optional<MpiFacts> mpi;     ///< For jobs that mpirun or jsrun starts.

  bool all_local() const;
};

/// Where the ranks of a request go on `hosts` (or in its saved plan). Hosts with 0 slots get none.
/// Pure.
/// Fails: invalid_argument, as place.
Result<Placement> place_ranks(const JobRequest& request, const discovery::HostSet& hosts,
                              const std::string& hosts_from);

/// Asks the source of the hosts that the request names, for an elastic job. This machine is merged
/// into one host, and a host has kMaxLocalRanks slots at most. Blocks: as
/// discovery::find_hosts. Fails: likewise.
Result<discovery::FoundHosts> offered_hosts(const JobRequest& request);

/// Asks files, programs, devices and the kernel for everything that plan_job needs, and places the
/// ranks, because which questions are asked depends on the placement.
/// Blocks: for discovery scripts, batch systems, `ssh -G`, mpirun and jsrun.
/// Fails: cancelled, by the request's descriptor; unavailable and timed_out, when an allocation
/// cannot be read; else invalid_argument,
/// not_found, unsupported and others, for what the user has asked for.
Result<JobFacts> probe_job(const JobRequest& request);

}  // namespace horo::launcher
