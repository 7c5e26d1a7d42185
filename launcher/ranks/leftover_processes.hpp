// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <sys/types.h>
#include <vector>

#include "base/deadline.hpp"
#include "base/loop/loop.hpp"
#include "base/result.hpp"

namespace horo::launcher {

/// Descendants of this process, a child subreaper, that no ProcessGroup watches: they outlived or
/// left the group of their rank. Reaps those that end, and kills those that are left in the end.
/// Thread: the loop's.
class LeftoverProcesses {
 public:
  using Pids = std::function<std::vector<pid_t>()>;

  /// `leaders`: the running leaders of ProcessGroups, which their groups reap. `spared`: other
  /// children, which are neither killed nor reaped; empty: there are none.
  LeftoverProcesses(Loop& loop, Pids leaders, Pids spared);

  /// Reaps on every SIGCHLD from now on. Fails: as Loop::on_signal.
  Status begin();

  void reap();

  /// SIGKILL to all descendants, now.
  void signal_kill();

  /// Kills until none is left or `last`, and calls `done` with the number of those that live on.
  void kill_all(Deadline last, std::function<void(int)> done);

 private:
  int kill_once();
  std::vector<pid_t> spared() const;

  Loop& loop_;
  const Pids leaders_;
  const Pids spared_;
  std::function<void(int)> done_;
  Subscription children_;
  Subscription retry_;
};

}  // namespace horo::launcher
