// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/agent_cgroup.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace horo::launcher {

namespace {

/// Waits until no process has the writing end of `pipe` any more, then kills the group.
[[noreturn]] void sweep(int pipe, const std::string& group) {
  // No signal to the guard's process group, and none that asks to end, may reach the sweeper.
  setpgid(0, 0);
  prctl(PR_SET_NAME, "horo-sweeper");
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  // The sweeper must not keep the launcher's stream, or anything else, open.
  const auto number = static_cast<unsigned>(pipe);
  if (number > 0) close_range(0, number - 1, 0);
  close_range(number + 1, ~0U, 0);
  remove_stale_control_groups(group);
  char byte = 0;
  while (read(pipe, &byte, 1) < 0 && errno == EINTR) {
  }
  end_control_group(group, Deadline::in(SteadyClock::instance(), kKillTime));
  _exit(0);
}

}  // namespace

AgentCgroup::AgentCgroup() {
  if (auto built = build(); !built) info_.reason = built.error().message;
}

Status AgentCgroup::build() {
  HORO_TRY(auto group, ControlGroup::make());
  std::array<int, 2> ends{};
  const bool piped = pipe2(ends.data(), O_CLOEXEC) == 0;
  if (piped) {
    const UniqueFd theirs(ends[0]);
    alive_ = UniqueFd(ends[1]);
    sweeper_ = fork();
    if (sweeper_ == 0) sweep(theirs.value(), group.path());
  }
  if (sweeper_ < 0) {
    const int error = errno;
    alive_.reset();
    end_control_group(group.path(), Deadline::in(SteadyClock::instance(), kKillTime));
    return fail_errno(error, "starting its sweeper");
  }
  info_.path = group.path();
  group_ = std::move(group);
  return {};
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
  dismiss_sweeper();
}

void AgentCgroup::dismiss_sweeper() {
  alive_.reset();
  // If the sweeper was reaped before, its number may belong to another process.
  if (waitpid(sweeper_, nullptr, WNOHANG) != 0) return;
  kill(sweeper_, SIGKILL);
  waitpid(sweeper_, nullptr, 0);
}

}  // namespace horo::launcher
