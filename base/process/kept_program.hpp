// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <list>
#include <optional>
#include <string>
#include <sys/resource.h>
#include <sys/types.h>
#include <vector>

#include "base/deadline.hpp"
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
  /// How long the program's process group has to end by SIGTERM before it is killed. 0: it is
  /// killed at once.
  int grace_ms = 0;
};

/// A running program that does not outlive this process, even if this process is killed by SIGKILL.
/// Between them stands a process of its own, the keeper, which shows itself as `job-keep`. When
/// this process ends, or at release(), the keeper sends SIGTERM to the program's process group and,
/// after the grace time, kills all that descends from the program. If the program has exited
/// before, release() ends the rest of its process group only, because it may have left a service in
/// a session of its own. Signals to the program's process group do not reach the keeper. When the
/// keeper is killed, the kernel kills the program, and the destructor kills the rest of the
/// process group; a descendant in another group or session is out of reach then.
class KeptProgram {
 public:
  /// Starts `command` in a process group of its own. Thread: any, also in a program with several
  /// threads. Fails: not_found, permission_denied (no access, or no program),
  /// unavailable (process or descriptor limit), unsupported (Linux before 5.3), io. Blocks: until
  /// the program has been executed.
  static Result<KeptProgram> start(const KeptCommand& command);

  KeptProgram(KeptProgram&& other) noexcept;
  KeptProgram& operator=(KeptProgram&&) = delete;
  /// Releases the program. Blocks: until the keeper is done, at most until answer_deadline().
  ~KeptProgram();

  /// The number of this process's child.
  int keeper() const { return keeper_; }

  /// Asks the keeper to end the program, once. If the program still runs, wait_status() fails when
  /// all is done. False: the keeper is gone.
  bool release();

  /// How long after release() a keeper that is not done has been stopped by a signal.
  Duration answer_time() const;

  /// Kills the keeper and the program's process group, so wait_status() fails.
  void kill_group() const;

  /// Becomes readable when the program has ended, or the keeper is done.
  int ended() const { return report_.value(); }

  /// The program's wait status. Fails: unavailable (the keeper was killed). Blocks: until the
  /// program has ended.
  Result<int> wait_status() const;

  /// Whether the destructor would not wait.
  bool is_over() const;

 private:
  KeptProgram(pid_t keeper, UniqueFd process, UniqueFd report, int grace_ms)
      : keeper_(keeper),
        process_(std::move(process)),
        report_(std::move(report)),
        grace_ms_(grace_ms) {}

  /// The keeper has exited, so it has ended the group. False also if it was killed.
  bool has_exited() const;

  pid_t keeper_;
  /// A pidfd of the keeper: even if a stranger reaps it, nothing here acts on another process that
  /// has got its number.
  UniqueFd process_;
  pid_t group_ = -1;  ///< The program's process group; -1: it was not started.
  UniqueFd report_;   ///< See run_keeper().
  int grace_ms_;
  std::optional<Deadline> answer_deadline_{};  ///< Since release().
  bool released_ = false;
};

/// Programs that are no longer needed. They are told to end when they come, so they end at the same
/// time, and the destructor waits for all of them together.
class EndingPrograms {
 public:
  void add(KeptProgram program);

  /// The keepers that are still at work. Forgets the others, which it reaps.
  std::vector<int> keepers();

 private:
  void forget_those_over();

  std::list<KeptProgram> programs_;
};

}  // namespace horo
