// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/guard.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <initializer_list>
#include <optional>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/exit_code.hpp"
#include "base/unique_fd.hpp"
#include "launcher/agent/agent_cgroup.hpp"
#include "launcher/process/descendants.hpp"

namespace horo::launcher {

namespace {

using namespace std::chrono_literals;

constexpr Duration kAgentEndTime = 2s;  ///< For an agent to end once the launcher is gone.

/// A batch system sends its signals to every process of a job. Ranks do not inherit the ignoring:
/// spawn_process sets the defaults.
void ignore(std::initializer_list<int> numbers) {
  for (const int number : numbers) std::signal(number, SIG_IGN);
}

using AgentMain = std::function<int(const ControlGroupInfo&)>;

[[noreturn]] void be_agent(const AgentMain& agent, const ControlGroupInfo& control_group,
                           pid_t guard, const sigset_t& mask) {
  // A process group of its own: a signal that kills the guard's group leaves the agent to clean up.
  setpgid(0, 0);
  prctl(PR_SET_NAME, "horo-agent");
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != guard)
    _exit(1);  // The guard ended before the line above; nothing has been started yet.
  if (!become_subreaper()) _exit(1);
  ignore({SIGINT, SIGHUP});  // The guard gets them too, and passes them on as SIGTERM.
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  _exit(agent(control_group));
}

/// Reaps the agent and adopted orphans. Returns the agent's wait status once it has ended.
std::optional<int> reap(pid_t agent) {
  for (;;) {
    int status = 0;
    const pid_t pid = waitpid(-1, &status, WNOHANG);
    if (pid == agent) return status;
    if (pid <= 0) return std::nullopt;
  }
}

/// Waits for what the guard acts on: signals, and the end of the launcher's stream.
class GuardEvents {
 public:
  GuardEvents(int stream, const sigset_t& awaited)
      : signals_(signalfd(-1, &awaited, SFD_CLOEXEC)),
        polled_{{{.fd = signals_.value(), .events = POLLIN, .revents = 0},
                 {.fd = stream, .events = POLLRDHUP, .revents = 0}}} {}

  /// Returns the next signal; 0, once, when the time for the agent to end has passed.
  int next_signal() {
    for (;;) {
      const int ready = poll(polled_.data(), polled_.size(), milliseconds_left());
      if (ready == 0) {
        agent_deadline_.reset();
        return 0;
      }
      if (polled_[1].revents != 0) {
        polled_[1].fd = -1;  // poll skips it from here on.
        polled_[1].revents = 0;
        agent_deadline_ = Deadline::in(SteadyClock::instance(), kAgentEndTime);
      }
      signalfd_siginfo info{};
      if (ready > 0 && polled_[0].revents != 0 &&
          read(signals_.value(), &info, sizeof info) == sizeof info)
        return static_cast<int>(info.ssi_signo);
    }
  }

 private:
  /// As poll takes it; -1: no limit.
  int milliseconds_left() const {
    if (!agent_deadline_) return -1;
    const auto left = agent_deadline_->left(SteadyClock::instance().now());
    return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count());
  }

  const UniqueFd signals_;
  std::array<pollfd, 2> polled_;
  std::optional<Deadline> agent_deadline_;
};

}  // namespace

Result<int> run_guarded(int stream, const AgentMain& agent) {
  HORO_TRY_STATUS(become_subreaper());
  ignore({SIGUSR1, SIGUSR2, SIGQUIT, SIGALRM});
  sigset_t awaited;
  sigemptyset(&awaited);
  for (const int number : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) sigaddset(&awaited, number);
  sigset_t before;
  sigprocmask(SIG_BLOCK, &awaited, &before);
  const pid_t guard = getpid();
  AgentCgroup cgroup;
  const auto started = cgroup.fork_into();
  if (!started) return Failure(Error(started.error()).context("starting the agent"));
  const pid_t child = *started;
  if (child == 0) be_agent(agent, cgroup.info(), guard, before);
  prctl(PR_SET_NAME, "horo-guard");
  GuardEvents events(stream, awaited);
  for (;;) {
    const int number = events.next_signal();
    if (number == 0) kill(child, SIGKILL);
    if (number == SIGCHLD) {
      const auto status = reap(child);
      if (!status) continue;
      cgroup.end(Deadline::in(SteadyClock::instance(), kKillTime));
      kill_descendants(Deadline::in(SteadyClock::instance(), kKillTime));
      return WIFEXITED(*status) ? WEXITSTATUS(*status) : exit_code::kSignalBase + WTERMSIG(*status);
    }
    if (number > 0) kill(child, SIGTERM);
  }
}

}  // namespace horo::launcher
