// SPDX-License-Identifier: Apache-2.0
// Finds the jobs that run on this host, and the memory that their ranks record into: /proc shows
// which processes have it open.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/common/running_job/running_launchers.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"

namespace horo::apps {

/// The timeline memory of one agent's ranks, or of a rank without agent.
struct JobMemory {
  UniqueFd fd;
  int regions = 0;
  std::string job;
  /// Its processes are in another PID namespace, so their process ids mean nothing here.
  bool in_other_pid_namespace = false;
};

/// The means by which a job can be observed on this host.
struct FoundJob {
  std::string id;
  std::vector<JobMemory> memories;          ///< Memory of its ranks on this host; may be empty.
  std::optional<RunningLauncher> launcher;  ///< Its launcher, which knows the ranks of all hosts.
};

/// Finds the one job whose id begins with `job`: a job of this user, or of another user whose
/// launcher runs here. Blocks: for /proc. Fails: not_found, invalid_argument (several jobs); both
/// messages name the jobs that were found.
Result<FoundJob> find_job(const std::string& job);

/// The address of the launcher, from the environment of the rank `pid`; empty: there is none.
std::string launcher_address(int pid);

}  // namespace horo::apps
