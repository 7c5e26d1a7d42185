// SPDX-License-Identifier: Apache-2.0
// Saves the last records of a running job: of all hosts through its launcher, or of this host from
// the memory that its processes have open.
#pragma once

#include <string>

#include "base/result.hpp"

namespace horo::apps {

/// Saves the timelines of the job whose id begins with `job`, and returns the folder. Missing ranks
/// are a warning. Fails: as find_job, WholeJob::attach and timeline::save_regions.
Result<std::string> save_running(const std::string& job);

}  // namespace horo::apps
