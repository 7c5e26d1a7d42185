// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/agent_cgroup.hpp"

#include <cerrno>
#include <unistd.h>
#include <utility>

namespace horo::launcher {

AgentCgroup::AgentCgroup() {
  auto group = ControlGroup::make();
  if (group) {
    info_.path = group->path();
    group_ = std::move(*group);
  } else {
    info_.reason = group.error().message;
  }
}

Result<pid_t> AgentCgroup::fork_into() {
  if (group_) {
    auto child = group_->fork_into();
    if (child) return child;
    end(Deadline::in(SteadyClock::instance(), kKillTime));
    info_ = {.path = {}, .reason = child.error().message};
  }
  const pid_t child = fork();
  if (child < 0) return fail_errno(errno, "starting the agent beside its guard");
  return child;
}

void AgentCgroup::end(Deadline deadline) {
  if (!group_) return;
  end_control_group(group_->path(), deadline);
  group_.reset();
}

}  // namespace horo::launcher
