// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/common/running_job/watch_options.hpp"
#include "base/result.hpp"
#include "launcher/host_gpus.hpp"
#include "timeline/view/live_view.hpp"

namespace horo::apps {

class HostJob;
class SshViews;
class WholeJob;

enum class Wanted {
  rows,     ///< The state of each rank, on all hosts.
  figures,  ///< Figures of this host's ranks: no process has the records of all hosts.
};

/// A running job as seen through everything that this host offers: the memory of its ranks here,
/// its launcher, and ssh. Thread: owner.
class JobObserver {
 public:
  /// `options` outlive it. Fails: as find_job, HostJob and WholeJob.
  static Result<JobObserver> open(const WatchOptions& options, Wanted wanted);
  ~JobObserver();
  JobObserver(JobObserver&&) noexcept;
  JobObserver& operator=(JobObserver&&) = delete;

  /// The present view. Blocks: for the agents' answers, at most an interval. Fails: as
  /// SshViews::start.
  Result<timeline::LiveView> look();

  /// Descriptors that become readable when the ranks have ended. Empty where there is a launcher:
  /// then only look() finds out.
  std::vector<int> processes() const;

  bool ended() const;

  /// The line that says what has ended.
  std::string end_text() const;

 private:
  explicit JobObserver(const WatchOptions& options);

  std::string absent_ranks_text(const timeline::LiveView& view) const;
  void add_gpus(timeline::LiveView& view);

  const WatchOptions& options_;
  std::string id_;
  std::unique_ptr<HostJob> here_;
  std::unique_ptr<WholeJob> whole_;
  std::unique_ptr<SshViews> ssh_;
  std::unique_ptr<launcher::HostGpus> gpus_;  ///< Null: the GPUs of this host are not wanted.
  std::string problem_;  ///< Why `whole_` is missing although there is a launcher.
};

}  // namespace horo::apps
