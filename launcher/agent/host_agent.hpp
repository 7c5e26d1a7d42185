// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/loop/loop.hpp"
#include "launcher/protocol/child_agents.hpp"
#include "launcher/protocol/sealed_bytes.hpp"
#include "launcher/ranks/rank_set.hpp"
#include "launcher/starter.hpp"

namespace horo::launcher {

/// The supervisor of one host's ranks. It takes orders from the launcher over a pair of
/// descriptors. It acts without an order in three cases: it poisons the board and ends the ranks
/// when the first of them fails; it kills them at once when its input or its guard ends; and it
/// does the same after a SIGTERM, when no order of the launcher follows. In an elastic job it
/// leaves it to the launcher what the end of a rank means for the others. It ends when its own
/// ranks and the agents that it relays for have ended, unless the launcher wants it to stay: then
/// it waits for further ranks, which find nothing of the earlier ones. This process must be a child
/// subreaper. Thread: the loop's.
class HostAgent {
 public:
  struct Options {
    int in = 0;
    int out = 1;
    int guard_pid = 0;
    ControlGroupInfo
        control_group;      ///< The control group of this process, reported to the launcher.
    int replacements = -1;  ///< An eventfd that counts replaced sweepers.
    Inheritance inheritance;
    MakeChildAgents children;  ///< For agents of other hosts; empty: this agent never relays.
    /// For a connection over a network that nothing else protects; null: `in` and `out` are safe.
    std::shared_ptr<protocol::SealedBytes> seals;
    bool stays = false;  ///< Stays until the launcher hangs up, even when nothing is left to do.
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
