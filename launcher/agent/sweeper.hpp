// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <sys/types.h>
#include <utility>

#include "base/process/process_title.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"

namespace horo::launcher {

/// A process beside guard and agent that ends the job's processes on this host when these two
/// cannot:
/// - Neither guard nor agent is left, even if both were killed at the same time and the launcher
///   with them: it kills their control group, if there is one.
/// - The launcher's side of the stream has ended, and guard or agent is still there after some
///   seconds, such as stopped by a signal: it kills all that descends from the guard, and the
///   guard.
class Sweeper {
 public:
  /// The guard calls it while it has one thread, before it starts the agent. `group`: the folder of
  /// the control group; empty: there is none. `title` shows the sweeper under a name of its own; it
  /// outlives this. Fails: unavailable (process limit, descriptors), io.
  static Result<Sweeper> start(int stream, const std::string& group, const ProcessTitle& title);

  /// Called by the guard for a child that was killed: if it was the sweeper, another one takes its
  /// place. True if so.
  bool replace(pid_t killed);

  /// Called by the guard, when nothing is left to be swept. Blocks: until the sweeper has ended.
  void dismiss();

 private:
  Sweeper(int stream, std::string group, const ProcessTitle& title, UniqueFd watched,
          UniqueFd alive)
      : stream_(stream),
        group_(std::move(group)),
        title_(&title),
        watched_(std::move(watched)),
        alive_(std::move(alive)) {}

  void run();

  int stream_;
  std::string group_;
  const ProcessTitle* title_;
  UniqueFd watched_;  ///< The reading end of a pipe, for the sweeper.
  UniqueFd alive_;    ///< Its writing end, which guard and agent hold.
  pid_t pid_ = -1;
};

}  // namespace horo::launcher
