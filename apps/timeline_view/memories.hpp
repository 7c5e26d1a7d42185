// SPDX-License-Identifier: Apache-2.0
// Jobs that run on this host: the memory into which their ranks record, through whoever holds it
// open.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/unique_fd.hpp"

namespace horo::apps {

/// Of one agent, or of a rank without one.
struct JobMemory {
  UniqueFd fd;
  int regions = 0;
  std::string job;
};

/// All memory of the one job whose id begins with `job`, among the processes of this user.
/// Blocks: for /proc. Fails: not_found, invalid_argument (several jobs); both name what there is.
Result<std::vector<JobMemory>> memories_of(const std::string& job);

}  // namespace horo::apps
