// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/loop/loop.hpp"
#include "launcher/agent/branches.hpp"
#include "launcher/agent/rank_set.hpp"
#include "launcher/starter.hpp"

namespace horo::launcher {

/// One host's supervisor: takes orders from the launcher over a pair of descriptors and owns the
/// ranks of its host. By itself, without asking: on the first failing rank it poisons the board and
/// ends the others; at the end of its input or of its guard it kills them all at once, and so on a
/// SIGTERM that no order of the launcher's follows. It ends when its own ranks and the agents that
/// go through it have.
/// This process must be a child subreaper. Thread: the loop's.
class HostAgent {
 public:
  /// Tells the launcher at the other end of `out`, in one blocking write, why there will be no
  /// agent.
  static void refuse(int out, const Error& reason);

  struct Options {
    int in = 0;
    int out = 1;
    int guard_pid = 0;
    Cover cover;  ///< Of this process; told to the launcher.
    Inheritance inheritance;
    MakeBranches branches;  ///< For agents of other hosts that go through this one; empty: never.
    bool stays = false;     ///< Until the launcher hangs up, even when nothing is left to do.
  };

  /// Fails: unavailable, io.
  static Result<std::unique_ptr<HostAgent>> make(Loop& loop, const Options& options);
  ~HostAgent();
  HostAgent(const HostAgent&) = delete;
  HostAgent& operator=(const HostAgent&) = delete;

  /// The agent's exit code, valid once it has stopped the loop: 0 if it finished as ordered.
  int exit_code() const;

 private:
  class Impl;
  explicit HostAgent(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace horo::launcher
