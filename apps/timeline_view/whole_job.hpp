// SPDX-License-Identifier: Apache-2.0
// A running job's ranks on all its hosts, through the launcher and its agents.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/timeline_view/launchers.hpp"
#include "apps/timeline_view/live_view.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"

namespace horo::apps {

/// Thread: owner.
class WholeJob {
 public:
  /// Blocks: for two seconds at most. Fails: permission_denied (another user's job), unavailable
  /// (it does not answer), version_mismatch, protocol, io.
  static Result<std::unique_ptr<WholeJob>> attach(const RunningLauncher& launcher);
  ~WholeJob();
  WholeJob(const WholeJob&) = delete;
  WholeJob& operator=(const WholeJob&) = delete;

  /// Adds the ranks that are not among the rows: as they are now, or as they were when their hosts
  /// were last heard of, which is a problem then. Blocks: for `most`.
  void add_to(LiveView& view, Duration most);

  /// The launcher has hung up.
  bool ended() const;

  struct Saved {
    int ranks = 0;
    std::vector<std::string> problems;
  };

  /// A file rank.<r>.timeline for each rank, in `folder`, which is there. Blocks: as long as bytes
  /// come. Fails: io.
  Result<Saved> save(const std::string& folder);

 private:
  class Impl;
  explicit WholeJob(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace horo::apps
