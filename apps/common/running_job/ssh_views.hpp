// SPDX-License-Identifier: Apache-2.0
// Observes a running job's ranks on other hosts: runs `horo top` there through ssh, and adds its
// views to the one of this host. Neither the job nor its agents take part in this.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "timeline/view/live_view.hpp"

namespace horo::apps {

/// Thread: owner. The destructor ends the ssh processes.
class SshViews {
 public:
  /// `once`: each host gives one view. Fails: not_found (no ssh), unavailable, io.
  static Result<std::unique_ptr<SshViews>> start(const std::vector<std::string>& hosts,
                                                 const std::string& job, Duration interval,
                                                 bool once);
  ~SshViews();
  SshViews(const SshViews&) = delete;
  SshViews& operator=(const SshViews&) = delete;

  /// Adds the newest view of each host, and for hosts without a view the reason. Blocks: no.
  void add_to(timeline::LiveView& view);
  /// Waits until each host has given a view or ended, but at most for `most`.
  void await(Duration most);

 private:
  class Impl;
  explicit SshViews(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace horo::apps
