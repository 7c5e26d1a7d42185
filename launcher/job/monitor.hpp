// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/loop/loop.hpp"
#include "launcher/job/monitored_job.hpp"

namespace horo::launcher {

/// Lets this user and root look at the job while it runs, and change the hosts of an elastic one,
/// over a Unix socket (docs/design/timeline.md). Passes a viewer's questions to the agents over
/// their existing connections, and the answers back. A viewer that is slow, silent or sends
/// nonsense does not hold up the job. Thread: the loop's.
class Monitor {
 public:
  /// Fails: unavailable, io.
  static Result<std::unique_ptr<Monitor>> open(Loop& loop, std::unique_ptr<MonitoredJob> job);
  ~Monitor();
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

 private:
  class Impl;
  explicit Monitor(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

/// Beginning of the abstract socket's name: "horo-job/<uid>/<pid>/<job>".
inline constexpr std::string_view kMonitorPrefix = "horo-job/";

}  // namespace horo::launcher
