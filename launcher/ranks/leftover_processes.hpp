// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
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

  /// A leader has ended, and others live on: kills those that it has left behind, as far as they
  /// can be told. They are in its group, or have `variable` ("NAME=value") in their environment, or
  /// descend from such a process. Looks again for a while, because processes fork.
  void kill_family(pid_t leader, std::string variable);

  /// Kills until none is left or `last`, and calls `done` with the number of those that live on.
  void kill_all(Deadline last, std::function<void(int)> done);

 private:
  /// The descendants that a leader has left behind.
  struct Family {
    pid_t leader = 0;
    std::string variable;
    Deadline last;
    int empty_looks = 0;  ///< How often no member was found in a row.
  };

  int kill_once();
  void kill_families();
  std::vector<pid_t> spared() const;

  Loop& loop_;
  const Pids leaders_;
  const Pids spared_;
  std::function<void(int)> done_;
  Subscription children_;
  Subscription retry_;
  std::vector<Family> families_;
  Subscription next_look_;  ///< For families.
};

}  // namespace horo::launcher
