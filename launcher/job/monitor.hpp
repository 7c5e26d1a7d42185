// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/loop/loop.hpp"
#include "launcher/job/job.hpp"

namespace horo::launcher {

/// Lets this user, and root, look at the job while it runs (docs/design/timeline.md): passes their
/// questions on to the agents, over the connections that are there, and the answers back. Nobody
/// who is slow, silent or talks nonsense holds up the job. Thread: the loop's.
class Monitor {
 public:
  /// `job` outlives it and was not started. Fails: unavailable, io.
  static Result<std::unique_ptr<Monitor>> open(Loop& loop, Job& job, const std::string& job_id,
                                               bool agent_per_rank);
  ~Monitor();
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

 private:
  class Impl;
  explicit Monitor(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

/// Of the launchers' abstract sockets: "horo-job/<uid>/<pid>/<job>".
inline constexpr std::string_view kMonitorPrefix = "horo-job/";

}  // namespace horo::launcher
