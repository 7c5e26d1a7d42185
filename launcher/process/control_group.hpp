// SPDX-License-Identifier: Apache-2.0
// A control group (cgroup v2) that a whole family of processes is born into: no setsid, no double
// fork and no change of environment leads out of it, and one write ends all of it.
#pragma once

#include <string>
#include <sys/types.h>

#include "base/deadline.hpp"
#include "base/result.hpp"
#include "launcher/process/unique_fd.hpp"

namespace horo::launcher {

/// One that was made here. Destroying it leaves the group as it is: end_control_group ends it.
class ControlGroup {
 public:
  /// An empty one below this process's own. Fails: unsupported (no such hierarchy, or a kernel
  /// older than 5.14), permission_denied, io; the message names the folder.
  static Result<ControlGroup> make();

  const std::string& path() const { return path_; }

  /// fork(), with the child in the group. Only while this process has one thread. Fails:
  /// unavailable (process limit), unsupported, permission_denied, io.
  Result<pid_t> fork_into() const;

 private:
  ControlGroup(std::string path, UniqueFd folder)
      : path_(std::move(path)), folder_(std::move(folder)) {}

  std::string path_;
  UniqueFd folder_;
};

/// SIGKILL to all processes of the group at `path` and of groups below it, then removes it. True
/// when it is gone, or was before; false when `path` is none of ours, or something is left after
/// `deadline`. Blocks: until then.
bool end_control_group(const std::string& path, Deadline deadline);

/// Removes groups of ours beside the one at `path` that are empty and older than a minute: whoever
/// was to remove them was killed with the rest.
void remove_stale_control_groups(const std::string& path);

}  // namespace horo::launcher
