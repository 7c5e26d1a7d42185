// SPDX-License-Identifier: Apache-2.0
// Everything that grew out of this process, wherever it went: setsid, double forks and new process
// groups leave the group but not the family, if this process is a child subreaper.
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

/// Who descends from whom, at one moment: a process that forks meanwhile may be missed, so look
/// again. Thread: immutable.
class Family {
 public:
  /// Fails: io (no /proc).
  static Result<Family> look();

  /// Living descendants of `ancestor` (a zombie counts as gone), parents before their children; but
  /// not `spared` ones, nor theirs.
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

/// Sends `number` to all living descendants of `ancestor`, but for `spared` and theirs.
void signal_descendants(pid_t ancestor, int number, const std::vector<pid_t>& spared = {});

/// SIGKILL to all descendants of this process, a subreaper, and reaps them, until none is left or
/// `deadline`. Returns how many live on. Reaps every child: nobody else may wait for one.
/// `spared` children and theirs live on and are not reaped. Blocks: until the last has ended, or
/// `deadline`.
int kill_descendants(Deadline deadline, const std::vector<pid_t>& spared = {});

/// The same for those descendants only that have `variable` ("NAME=value") in their environment.
/// Reaps none but these. Blocks: until the last has ended, or `deadline`.
int kill_descendants_with(std::string_view variable, Deadline deadline);

}  // namespace horo::launcher
