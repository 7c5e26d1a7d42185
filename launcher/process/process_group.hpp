// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "base/loop/loop.hpp"
#include "launcher/process/command.hpp"
#include "launcher/starter.hpp"

namespace horo::launcher {

/// One child and the process group that it leads. A descendant that leaves the group, or outlives
/// the leader, is not watched: descendants.hpp finds such processes.
/// Thread: the loop's. Handlers run from the loop, so destroying the group inside one is safe.
class ProcessGroup {
 public:
  /// Starts `command` as leader of a new group. The leader gets `command.parent_death_signal` when
  /// the calling thread ends.
  /// Fails: as spawn_process.
  static Result<std::unique_ptr<ProcessGroup>> spawn(Loop& loop, const Command& command);
  ~ProcessGroup();  ///< SIGKILL to the group, at once.
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  int pid() const;
  bool running() const;

  /// Gets bytes as they come. The view is valid during the call only.
  void on_output(std::function<void(Stream, std::string_view)> handler);
  /// Called once, after the last output. Does not wait for output of descendants that live on.
  void on_exit(std::function<void(ExitStatus)> handler);

  /// The most bytes of one read; by default as many as a pipe holds.
  void read_at_most(std::size_t bytes);
  /// While paused, nothing is read before the exit, which reads what the pipes hold then.
  void pause_output();
  void resume_output();

  /// For Input::pipe. `taken` is called when all bytes have been written, or no process reads any
  /// more. Wait for it before the next call.
  void write_input(std::string_view bytes, Task taken);
  /// Ends the input after what was written.
  void close_input();

  /// Sends a signal to every member, while the leader runs.
  void signal(int number);
  /// Sends SIGTERM to every member now, and SIGCONT for members that are stopped; SIGKILL after
  /// `grace`.
  /// Idempotent. Blocks: no.
  void stop(Duration grace);

 private:
  class Impl;
  explicit ProcessGroup(std::shared_ptr<Impl> impl);

  std::shared_ptr<Impl> impl_;
};

}  // namespace horo::launcher
