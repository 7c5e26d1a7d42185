// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <sys/types.h>

#include "launcher/process/control_group.hpp"
#include "launcher/process/unique_fd.hpp"
#include "launcher/starter.hpp"

namespace horo::launcher {

/// A control group for the agent and all that it starts, with a process beside it, the sweeper,
/// that ends the group when neither guard nor agent is left: also when both were killed in one
/// instant, and the launcher with them. Where no group can be made it is none, and says why. The
/// guard makes it, while it has one thread.
class Enclosure {
 public:
  Enclosure();

  const Cover& cover() const { return cover_; }

  /// fork(), with the child in the group if there is one. Fails: unavailable (process limit), io.
  Result<pid_t> fork_into();

  /// The guard's last act: kills what is left in the group and removes it. Blocks: until then, or
  /// `deadline`.
  void end(Deadline deadline);

 private:
  Status build();
  void dismiss_sweeper();

  Cover cover_;
  std::optional<ControlGroup> group_;
  UniqueFd alive_;  ///< Guard's and agent's end of the sweeper's pipe.
  pid_t sweeper_ = -1;
};

}  // namespace horo::launcher
