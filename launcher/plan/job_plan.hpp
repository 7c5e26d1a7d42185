// SPDX-License-Identifier: Apache-2.0
// Everything that is decided before anything starts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/binding/binding.hpp"
#include "launcher/output/job_output.hpp"
#include "launcher/placement.hpp"
#include "launcher/plan/job_facts.hpp"
#include "launcher/plan/job_request.hpp"
#include "launcher/plan/mpi_plan.hpp"
#include "launcher/plan/start_plan.hpp"
#include "launcher/starter.hpp"

namespace horo::launcher {

struct JobPlan {
  std::string job_id;
  kv::Secret secret{};                   ///< It opens the job's key-value store.
  std::string program;                   ///< The file that the command's first word means.
  std::optional<Error> program_missing;  ///< Why this machine cannot execute `program`.
  std::string hosts_from;  ///< The source of the host list and why it was chosen, for people.
  Placement placement;
  std::optional<std::size_t> this_machine;  ///< The host that is this machine, if any is.
  StartPlan starts;
  /// By host; nothing: another machine, whose agent decides.
  std::vector<std::optional<HostParts>> parts;
  BindTo bind_to = BindTo::none;  ///< The binding that every host's agent is asked for.
  GpuMode gpus = GpuMode::off;
  /// By host. The address of the rendezvous is missing: it is known when the job has started.
  std::vector<AgentSpec> agents;
  OutputOptions output;
  Environment common;  ///< Variables of all ranks, besides inherited ones and their identity.
  int threads = 0;     ///< OMP_NUM_THREADS of the ranks, in `common`; 0: the user's value counts.
  std::optional<MpiPlan> mpi;
  /// These are as in JobFacts. An elastic job's placement is that of the first generation if all
  /// hosts can be used; it may be empty.
  std::optional<ElasticSize> elastic{};
  discovery::HostSet offered{};
  Duration offer_pause{};  ///< Where the offer may change: between two questions to its source.
  bool offer_may_change = false;

  int size() const { return static_cast<int>(placement.ranks.size()); }
};

/// Pure: the same request and facts give the same plan.
/// Fails: invalid_argument and unsupported, for settings that cannot be met.
Result<JobPlan> plan_job(const JobRequest& request, JobFacts facts);

/// The part of `plan` that is worth storing.
SavedPlan saved_plan_of(const JobPlan& plan);

}  // namespace horo::launcher
