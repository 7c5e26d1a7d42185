// SPDX-License-Identifier: Apache-2.0
// The last moments of a job that runs: of all hosts through its launcher, or of this host from the
// memory that its processes hold open.
#pragma once

#include <string>

#include "base/result.hpp"

namespace horo::apps {

/// Saves the timelines of job `job` (its id, or the beginning of it) to a folder, and says which.
/// Ranks that are missing are a warning. Fails: as find_job, WholeJob::attach and
/// timeline::save_regions.
Result<std::string> save_running(const std::string& job);

}  // namespace horo::apps
