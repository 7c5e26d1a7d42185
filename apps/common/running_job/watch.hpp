// SPDX-License-Identifier: Apache-2.0
// Views of a running job, shown again and again.
#pragma once

#include <string_view>

#include "apps/common/running_job/watch_options.hpp"
#include "base/result.hpp"

namespace horo::apps {

/// Writes `text` to standard output. Returns false, and logs the reason, where that fails.
bool print(const WatchOptions& options, std::string_view text);

/// Shows the state of each rank of a job, as a table that refreshes itself on a terminal, else in
/// lines, until the job ends or a person quits. Returns the exit code. Fails: as find_job, HostJob
/// and WholeJob.
Result<int> watch_ranks(const WatchOptions& options);

/// Shows the figures of each interval of a job's ranks on this host. Otherwise as watch_ranks.
Result<int> follow_job(const WatchOptions& options);

}  // namespace horo::apps
