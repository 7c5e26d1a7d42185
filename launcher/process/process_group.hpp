// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "base/loop/loop.hpp"
#include "launcher/process/command.hpp"
#include "launcher/starter.hpp"

namespace horo::launcher {

/// One child and the process group it leads, as a unit. A descendant that leaves the group, or
/// outlives the leader, is not followed: descendants.hpp finds those.
/// Thread: the loop's. Handlers run from the loop, so destroying the group inside one is safe.
class ProcessGroup {
 public:
  /// Starts `command` as leader of a new group, which also ends if this thread does.
  /// Fails: as spawn_process.
  static Result<std::unique_ptr<ProcessGroup>> spawn(Loop& loop, const Command& command);
  ~ProcessGroup();  ///< SIGKILL to the group, at once.
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  int pid() const;
  bool running() const;

  /// Bytes as they come; the view ends with the call.
  void on_output(std::function<void(Stream, std::string_view)> handler);
  /// Once, after the last output. Output of descendants that live on is not waited for.
  void on_exit(std::function<void(ExitStatus)> handler);

  /// Bytes that are read at once; without it as many as a pipe holds.
  void read_at_most(std::size_t bytes);
  /// While paused only the exit brings output: what the pipes hold then.
  void pause_output();
  void resume_output();

  /// Under Input::pipe. `taken` is called when all has been written or nobody reads any more; one
  /// call at a time.
  void write_input(std::string_view bytes, Task taken);
  /// End of input after what was written.
  void close_input();

  /// To every member, while the leader runs.
  void signal(int number);
  /// SIGTERM to every member now (and SIGCONT, for those that are stopped), SIGKILL after `grace`.
  /// Idempotent. Blocks: no.
  void stop(Duration grace);

 private:
  class Impl;
  explicit ProcessGroup(std::shared_ptr<Impl> impl);

  std::shared_ptr<Impl> impl_;
};

}  // namespace horo::launcher
