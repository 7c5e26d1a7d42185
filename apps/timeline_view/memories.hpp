// SPDX-License-Identifier: Apache-2.0
// Jobs that run on this host: the memory into which their ranks record, through whoever holds it
// open.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/timeline_view/launchers.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"

namespace horo::apps {

/// Of one agent, or of a rank without one.
struct JobMemory {
  UniqueFd fd;
  int regions = 0;
  std::string job;
  bool elsewhere = false;  ///< Of processes of another pid namespace, who have other numbers here.
};

/// What there is on this host to look at a job through.
struct FoundJob {
  std::string id;
  std::vector<JobMemory> memories;          ///< Of its ranks here; none: there are none.
  std::optional<RunningLauncher> launcher;  ///< Through which all its ranks can be seen.
};

/// The one job whose id begins with `job`: of this user, or of another whose launcher is here.
/// Blocks: for /proc. Fails: not_found, invalid_argument (several jobs); both name what there is.
Result<FoundJob> find_job(const std::string& job);

/// Where the launcher of a rank's agent is, as the rank was told; empty: there is none.
std::string launcher_address(int pid);

}  // namespace horo::apps
