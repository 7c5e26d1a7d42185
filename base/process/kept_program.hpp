// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <sys/resource.h>
#include <sys/types.h>
#include <vector>

#include "base/result.hpp"
#include "base/unique_fd.hpp"

namespace horo {

struct KeptCommand {
  std::vector<std::string> words;  ///< The first is searched for in PATH if it has no slash.
  int in = -1;                     ///< -1: no input.
  int out = -1;
  int err = -1;
  /// Set: the program has this limit of descriptors, no others than these three, and no signal
  /// ignored or blocked. Empty: it inherits what this process has.
  std::optional<rlimit> fresh_with{};
  /// How long the program has to end by SIGTERM when this process is gone, before it and all that
  /// descends from it is killed.
  int grace_ms = 0;
};

/// A running program that does not outlive this process, even if this process is killed by SIGKILL.
/// Between them stands a process of its own, the keeper, which shows itself as `job-keep`. When
/// this process ends, or at the destructor, the keeper kills all that descends from the program; if
/// the program has ended by itself, the destructor kills the rest of its process group only.
/// When the keeper is killed, the kernel kills the program, and the destructor kills the rest of
/// its process group.
class KeptProgram {
 public:
  /// Starts `command` in a process group of its own. Thread: any, also in a program with several
  /// threads. Fails: not_found, permission_denied (no access, or no program),
  /// unavailable (process or descriptor limit), unsupported (Linux before 5.3), io. Blocks: until
  /// the program has been executed.
  static Result<KeptProgram> start(const KeptCommand& command);

  KeptProgram(KeptProgram&& other) noexcept;
  KeptProgram& operator=(KeptProgram&&) = delete;
  /// Kills all that descends from the program if it still runs, else the rest of its process group.
  /// Blocks: until they have ended; two seconds if the keeper was stopped.
  ~KeptProgram();

  /// The keeper's number, which is that of the process group.
  int keeper() const { return keeper_; }

  /// Asks the keeper to do what the destructor does. If the program still ran, wait_status() fails
  /// then. False: the keeper is gone.
  bool release() const;

  /// Kills the process group. The keeper is among it, so wait_status() fails.
  void kill_group() const;

  /// Becomes readable when the program has ended.
  int ended() const { return report_.value(); }

  /// The program's wait status. Fails: unavailable (the keeper was killed). Blocks: until the
  /// program has ended.
  Result<int> wait_status() const;

 private:
  KeptProgram(pid_t keeper, UniqueFd report) : keeper_(keeper), report_(std::move(report)) {}

  pid_t keeper_;  ///< The leader of the process group.
  /// The keeper sends the start's error, 0 for none, and the wait status. A message to it releases
  /// it.
  UniqueFd report_;
};

}  // namespace horo
