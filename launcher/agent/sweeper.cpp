// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/sweeper.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "base/process/leave_descriptors.hpp"
#include "launcher/agent/agent_cgroup.hpp"
#include "launcher/process/control_group.hpp"
#include "launcher/process/descendants.hpp"

namespace horo::launcher {

namespace {

constexpr const char* kTitle = "job-sweep";

/// For guard and agent to end by themselves once the launcher is gone. They kill their processes
/// within it, if the kernel lets them.
constexpr Duration kPatience = std::chrono::seconds(5);
constexpr Duration kRound = std::chrono::milliseconds(100);  ///< Then it looks for new forks.

/// The process itself.
class Sweeping {
 public:
  Sweeping(int stream, int alive, pid_t guard, const std::string& group)
      : stream_(stream), alive_(alive), guard_(guard), group_(group) {}

  [[noreturn]] void run() {
    leave_the_rest();
    if (!group_.empty()) remove_stale_control_groups(group_);
    await_end();
    if (!group_.empty())
      end_control_group(group_, Deadline::in(SteadyClock::instance(), kKillTime));
    _exit(0);
  }

 private:
  /// No signal to the guard's process group, and none that asks to end, may reach the sweeper. It
  /// keeps no descriptor open but its own two.
  void leave_the_rest() {
    setpgid(0, 0);
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, nullptr);
    if (dup2(stream_, STDIN_FILENO) < 0 || dup2(alive_, STDOUT_FILENO) < 0) _exit(1);
    close_descriptors(STDERR_FILENO);
    stream_ = STDIN_FILENO;
    alive_ = STDOUT_FILENO;
  }

  /// Returns when guard and agent are gone.
  void await_end() {
    while (!are_gone(-1)) {
      if (!launcher_is_gone()) continue;
      if (!are_gone(milliseconds(kPatience))) kill_the_rest();
      return;
    }
  }

  /// Kills what descends from the guard, until it ends, and at last the guard.
  void kill_the_rest() {
    const auto deadline = Deadline::in(SteadyClock::instance(), kKillTime);
    do {
      if (getppid() != guard_) break;  // Its number may belong to another process now.
      const auto family = ProcessTree::look();
      const std::vector<pid_t> living =
          family ? family->below(guard_, {getpid()}) : std::vector<pid_t>();
      for (const pid_t pid : living) kill(pid, SIGKILL);
      kill(guard_, SIGCONT);  // So that it reaps them and ends.
    } while (!are_gone(milliseconds(kRound)) && !deadline.expired(SteadyClock::instance().now()));
    if (getppid() == guard_) kill(guard_, SIGKILL);
  }

  bool launcher_is_gone() const {
    pollfd stream{.fd = stream_, .events = POLLRDHUP, .revents = 0};
    return poll(&stream, 1, 0) > 0;
  }

  /// Waits until neither guard nor agent is left, the launcher is gone, or the time has passed.
  bool are_gone(int timeout) const {
    // Without a limit, the end of the stream ends the wait too.
    std::array<pollfd, 2> watched{
        {{.fd = alive_, .events = POLLIN, .revents = 0},
         {.fd = timeout < 0 ? stream_ : -1, .events = POLLRDHUP, .revents = 0}}};
    while (poll(watched.data(), watched.size(), timeout) < 0 && errno == EINTR) {
    }
    return watched[0].revents != 0;
  }

  static int milliseconds(Duration duration) {
    return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(duration).count());
  }

  int stream_;
  int alive_;
  const pid_t guard_;
  const std::string& group_;
};

}  // namespace

Result<Sweeper> Sweeper::start(int stream, const std::string& group, const ProcessTitle& title) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return fail_errno(errno, "making the sweeper's pipe");
  Sweeper sweeper(stream, group, title, UniqueFd(ends[0]), UniqueFd(ends[1]));
  sweeper.run();
  if (sweeper.pid_ < 0) return fail_errno(errno, "starting the sweeper");
  return sweeper;
}

void Sweeper::run() {
  const pid_t guard = getpid();
  pid_ = fork();
  if (pid_ != 0) return;
  title_->show(kTitle);
  Sweeping(stream_, watched_.value(), guard, group_).run();
}

bool Sweeper::replace(pid_t killed) {
  if (killed != pid_) return false;
  run();
  return pid_ > 0;
}

void Sweeper::dismiss() {
  alive_.reset();
  if (pid_ < 0) return;  // No process could be made to replace one that was killed.
  // If the sweeper was reaped before, its number may belong to another process.
  if (waitpid(pid_, nullptr, WNOHANG) != 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

}  // namespace horo::launcher
