// SPDX-License-Identifier: Apache-2.0
// A control group (cgroup v2) in which a process tree starts. No descendant leaves it by setsid, a
// double fork or a change of its environment.
#pragma once

#include <string>
#include <sys/types.h>

#include "base/deadline.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"

namespace horo::launcher {

/// A group that this process has made. Destroying the object leaves the group: end_control_group
/// ends it.
class ControlGroup {
 public:
  /// Makes an empty group below this process's own. Fails: unsupported (no such hierarchy, or a
  /// kernel older than 5.14), permission_denied, io; the message names the folder.
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

/// Kills all processes of the group at `path` and of the groups below it, then removes the groups.
/// Returns true when the group does not exist any more; false when `path` is no group of horo, or
/// something is left after `deadline`. Blocks: until then.
bool end_control_group(const std::string& path, Deadline deadline);

/// Removes the empty groups below the one at `path`. Does nothing if `path` is no group of horo.
void clear_control_group(const std::string& path);

/// Removes groups of horo beside the one at `path` that are empty and older than a minute. Their
/// sweeper was killed before it could remove them.
void remove_stale_control_groups(const std::string& path);

}  // namespace horo::launcher
