// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <sys/types.h>

#include "base/clock.hpp"
#include "launcher/process/control_group.hpp"
#include "launcher/starter.hpp"

namespace horo::launcher {

/// The longest that the kernel may take to end processes after SIGKILL.
inline constexpr Duration kKillTime = std::chrono::seconds(10);

/// A control group for the agent and all that it starts. Where no group can be made, info() says
/// why. The guard makes it while it has one thread.
class AgentCgroup {
 public:
  AgentCgroup();

  const ControlGroupInfo& info() const { return info_; }

  /// fork(), with the child in the group if there is a group. Fails: unavailable (process limit),
  /// io.
  Result<pid_t> fork_into();

  /// For the end of the guard: kills what is left in the group and removes it. Blocks: until that
  /// is done, or `deadline`.
  void end(Deadline deadline);

 private:
  ControlGroupInfo info_;
  std::optional<ControlGroup> group_;
};

}  // namespace horo::launcher
