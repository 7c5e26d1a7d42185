// SPDX-License-Identifier: Apache-2.0
// Observes a running job's ranks on all its hosts, through the launcher and its agents.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/common/running_job/running_launchers.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"
#include "timeline/view/live_view.hpp"

namespace horo::apps {

/// Thread: owner.
class WholeJob {
 public:
  /// Connects to the launcher. Blocks: for two seconds at most. Fails: permission_denied (another
  /// user's job), unavailable (it does not answer), version_mismatch, protocol, io.
  static Result<std::unique_ptr<WholeJob>> attach(const RunningLauncher& launcher);
  ~WholeJob();
  WholeJob(const WholeJob&) = delete;
  WholeJob& operator=(const WholeJob&) = delete;

  /// Adds the ranks that have no row yet. Where a host does not answer, adds its last known rows
  /// and a problem. Blocks: for `most`.
  void add_to(timeline::LiveView& view, Duration most);

  /// Whether the launcher has closed the connection.
  bool ended() const;

  struct Saved {
    int ranks = 0;
    std::vector<std::string> problems;
  };

  /// Writes a file rank.<r>.timeline for each rank to `folder`, which must exist. Blocks: as long
  /// as bytes arrive. Fails: io.
  Result<Saved> save(const std::string& folder);

 private:
  class Impl;
  explicit WholeJob(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace horo::apps
