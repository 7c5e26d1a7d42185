// SPDX-License-Identifier: Apache-2.0
// The descendants of this process. With setsid, a double fork or a new process group a process
// leaves its group, but it stays a descendant if this process is a child subreaper.
#pragma once

#include <string_view>
#include <sys/types.h>
#include <unordered_map>
#include <vector>

#include "base/deadline.hpp"
#include "base/result.hpp"

namespace horo::launcher {

/// Makes orphaned descendants children of this process instead of init's. Fails: io.
Status become_subreaper();

/// The parents and children of all processes at one moment. A process that forks meanwhile may be
/// missed, so look again. Thread: immutable.
class ProcessTree {
 public:
  /// Fails: io (no /proc).
  static Result<ProcessTree> look();

  /// The living descendants of `ancestor`, parents before their children, without `spared` ones
  /// and their descendants. A zombie counts as ended.
  std::vector<pid_t> below(pid_t ancestor, const std::vector<pid_t>& spared = {}) const;
  /// Children of `parent` that have ended and are not reaped.
  std::vector<pid_t> ended_children(pid_t parent) const;

 private:
  struct Child {
    pid_t pid = 0;
    bool alive = false;
  };

  std::unordered_map<pid_t, std::vector<Child>> children_;
};

/// Whether the environment with which a process was started has `variable` ("NAME=value").
bool has_variable(pid_t pid, std::string_view variable);

/// Sends `number` to all living descendants of `ancestor`, but not to `spared` ones and their
/// descendants.
void signal_descendants(pid_t ancestor, int number, const std::vector<pid_t>& spared = {});

/// Kills all descendants of this process, a subreaper, and reaps them, until none is left or
/// `deadline`. Returns how many live on. It reaps every child, so no other code may wait for one.
/// `spared` children and their descendants are neither killed nor reaped. Blocks: until the last
/// has ended, or `deadline`.
int kill_descendants(Deadline deadline, const std::vector<pid_t>& spared = {});

/// As kill_descendants, but only for descendants that have `variable` ("NAME=value") in their
/// environment. Only these are reaped. Blocks: until the last has ended, or `deadline`.
int kill_descendants_with(std::string_view variable, Deadline deadline);

}  // namespace horo::launcher
