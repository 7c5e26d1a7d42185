// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/knobs/settings.hpp"
#include "base/kv/auth.hpp"
#include "base/result.hpp"
#include "base/worker_env.hpp"
#include "discovery/host.hpp"
#include "launcher/placement.hpp"
#include "launcher/plan/rank_environment.hpp"
#include "launcher/plan/saved_plan.hpp"

namespace horo::launcher {

/// The program that starts the rank processes. Under `agents` each host's agent does.
enum class RankStarter : std::uint8_t { agents, mpirun, jsrun };

/// The look of output lines and files.
enum class OutputFormat : std::uint8_t { horo, horovod };

/// Hosts that come to an elastic job which runs already. All their slots are planned for.
struct JoiningHosts {
  discovery::HostSet hosts;
  std::string job_id;
  kv::Secret secret{};
};

/// Everything that a caller decides about a job. A program, a Python function or a cluster
/// framework fills in the same value.
struct JobRequest {
  std::vector<std::string> command;  ///< argv of every rank; never passed through a shell.
  std::string directory;             ///< Working directory of the ranks.
  /// The launcher's environment, an array like environ. It outlives the request.
  const char* const* environment = nullptr;

  std::optional<int> np;  ///< Number of ranks; unset: all slots of the hosts.
  /// At most one of these three is set. None: the batch system's hosts, or this machine.
  std::string hosts;     ///< "a:4,b:4".
  std::string hostfile;  ///< Path.
  std::string script;    ///< Path of a program that prints hosts.
  /// Replaces np and hosts.
  std::optional<SavedPlan> saved_plan{};
  std::string saved_plan_path{};  ///< For messages.

  int out_fd = 1;  ///< Where the ranks' standard output goes,
  int err_fd = 2;  ///< and their standard error, with the messages of JobRunner::say.
  RankStarter starter = RankStarter::agents;
  OutputFormat format = OutputFormat::horo;
  Environment extra_variables{};  ///< For all ranks, besides what they inherit.
  Settings settings{};            ///< The knobs.

  /// probe_job ends its programs and fails when this descriptor is readable; -1: it never does.
  int cancel = -1;

  // Set by JobRunner for restarts.
  int restart_count = 0;
  std::vector<std::string> avoided_hosts{};  ///< Hosts that were lost earlier.

  /// Set by JobRunner for hosts that come later. Replaces np and all sources of hosts.
  std::optional<JoiningHosts> joining{};

  /// A variable of `environment`; null: it is not set.
  const char* variable(const char* name) const { return find_variable(environment, name); }
};

/// The numbers of ranks of an elastic job.
struct ElasticSize {
  int np = 1;            ///< The job begins when there are so many slots.
  int least = 1;         ///< It goes on while so many ranks are left.
  int most = kMaxRanks;  ///< It never has more; kMaxRanks: no limit.
  bool limited = false;  ///< The user gave `most`.
};

/// A job is elastic with --min-np or --max-np, and under horovodrun's name also with a discovery
/// script. Nothing: it is not.
/// Fails: invalid_argument (numbers that do not fit together, and options that an elastic job
/// cannot have).
Result<std::optional<ElasticSize>> elastic_size(const JobRequest& request);

}  // namespace horo::launcher
