// SPDX-License-Identifier: Apache-2.0
// Looks at a running job of this host without a word to it: by reading the memory into which its
// ranks record.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/timeline_view/live_view.hpp"
#include "apps/timeline_view/memories.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"

namespace horo::apps {

/// Thread: owner.
class LiveJob {
 public:
  /// `memories`: some, of one job. Fails: not_found (its ranks have ended).
  static Result<std::unique_ptr<LiveJob>> attach(std::vector<JobMemory> memories);
  ~LiveJob();
  LiveJob(const LiveJob&) = delete;
  LiveJob& operator=(const LiveJob&) = delete;

  /// What was recorded since the last call; at the first one rates are of the last `window`.
  /// Blocks: no.
  LiveView refresh(Duration window);

  /// Of ranks that run; each becomes readable when its rank has ended.
  std::vector<int> processes() const;

 private:
  class Impl;
  explicit LiveJob(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace horo::apps
