// SPDX-License-Identifier: Apache-2.0
// Observes a running job's ranks on this host by reading the memory that they record into. The job
// itself takes no part in this.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/common/running_job/find_job.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"
#include "timeline/view/live_view.hpp"

namespace horo::apps {

/// Thread: owner.
class HostJob {
 public:
  /// `memories`: at least one, all of one job. Fails: not_found (its ranks have ended).
  static Result<std::unique_ptr<HostJob>> attach(std::vector<JobMemory> memories);
  ~HostJob();
  HostJob(const HostJob&) = delete;
  HostJob& operator=(const HostJob&) = delete;

  /// The present view, with the figures of the records since the last call. The rates of the first
  /// call cover the last `window`. Blocks: no.
  timeline::LiveView refresh(Duration window);

  /// Descriptors of the running ranks; each becomes readable when its rank ends.
  std::vector<int> processes() const;

 private:
  class Impl;
  explicit HostJob(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace horo::apps
