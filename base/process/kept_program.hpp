// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <sys/types.h>
#include <vector>

#include "base/result.hpp"
#include "base/unique_fd.hpp"

namespace horo {

/// A running program that does not outlive this process, even if this process is killed by SIGKILL.
/// Between them stands a process of its own, the keeper, which shows itself as `job-keep`. When
/// this process ends, the keeper kills all that descends from the program. When the keeper is
/// killed, the kernel kills the program, and the destructor kills the rest of its process group.
class KeptProgram {
 public:
  /// Starts `command` in a process group of its own, with `out` and `err` as its outputs and no
  /// input. The first word is searched for in PATH if it has no slash. Thread: any, also in a
  /// program with several threads. Fails: not_found, permission_denied (no access, or no program),
  /// unavailable (process or descriptor limit), io. Blocks: until the program has been executed.
  static Result<KeptProgram> start(const std::vector<std::string>& command, int out, int err);

  KeptProgram(KeptProgram&& other) noexcept;
  KeptProgram& operator=(KeptProgram&&) = delete;
  /// Kills the process group, whether or not the program has ended.
  ~KeptProgram();

  /// Becomes readable when the program has ended.
  int ended() const { return report_.value(); }

  /// The program's wait status. Fails: unavailable (the keeper was killed). Blocks: until the
  /// program has ended.
  Result<int> wait_status() const;

 private:
  KeptProgram(pid_t keeper, UniqueFd report) : keeper_(keeper), report_(std::move(report)) {}

  pid_t keeper_;     ///< The leader of the process group.
  UniqueFd report_;  ///< The keeper writes the start's error, 0 for none, and the wait status.
};

}  // namespace horo
