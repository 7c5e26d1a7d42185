// SPDX-License-Identifier: Apache-2.0
// What is shown again and again while a job runs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace horo::apps {

struct WatchOptions {
  std::string what;  ///< The beginning of a job's id, or a file.
  Duration interval{};
  std::vector<std::string> hosts;  ///< Others of the job, to be looked at from here.
  bool json = false;
  bool once = false;  ///< One view, and no waiting.
};

/// To standard output; false: it could not, and has told why.
bool print(std::string_view text);

/// Shows what each rank of a job is about, as a table that refreshes itself on a terminal, else in
/// lines, until the job ends or a person asks. Returns the exit code. Fails: as find_job, LiveJob
/// and WholeJob.
Result<int> watch_ranks(const WatchOptions& options);

/// The figures of each interval of a job's ranks on this host. As watch_ranks.
Result<int> follow_job(const WatchOptions& options);

/// The figures of each interval of a trace that is being written, up to the moment when nobody has
/// it open any more. Fails: not_found, permission_denied, io, protocol, unsupported.
Result<int> follow_file(const WatchOptions& options);

}  // namespace horo::apps
