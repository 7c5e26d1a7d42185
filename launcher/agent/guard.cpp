// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/guard.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <initializer_list>
#include <optional>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "base/exit_code.hpp"
#include "base/process/process_title.hpp"
#include "base/unique_fd.hpp"
#include "launcher/agent/agent_cgroup.hpp"
#include "launcher/agent/sweeper.hpp"
#include "launcher/process/descendants.hpp"

namespace horo::launcher {

namespace {

using namespace std::chrono_literals;

constexpr Duration kAgentEndTime = 2s;  ///< For an agent to end once the launcher is gone.
/// Without "horo", so that "pkill horo" leaves the guard to clean up.
constexpr const char* kGuardTitle = "job-guard";
constexpr const char* kAgentName = "horo-agent";

/// A batch system sends its signals to every process of a job. Ranks do not inherit the ignoring:
/// spawn_process sets the defaults.
void ignore(std::initializer_list<int> numbers) {
  for (const int number : numbers) std::signal(number, SIG_IGN);
}

using AgentMain = std::function<int(const AgentSurroundings&)>;

[[noreturn]] void be_agent(const AgentMain& agent, const AgentSurroundings& surroundings,
                           pid_t guard, const sigset_t& mask) {
  // A process group of its own: a signal that kills the guard's group leaves the agent to clean up.
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != guard)
    _exit(1);  // The guard ended before the line above; nothing has been started yet.
  if (!become_subreaper()) _exit(1);
  ignore({SIGINT, SIGHUP});  // The guard gets them too, and passes them on as SIGTERM.
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  _exit(agent(surroundings));
}

/// Reaps the agent, the sweeper and adopted orphans. Returns the agent's wait status once it has
/// ended.
std::optional<int> reap(pid_t agent, Sweeper& sweeper, int replacements) {
  for (;;) {
    int status = 0;
    const pid_t pid = waitpid(-1, &status, WNOHANG);
    if (pid == agent) return status;
    if (pid <= 0) return std::nullopt;
    if (WIFSIGNALED(status) && sweeper.replace(pid)) eventfd_write(replacements, 1);
  }
}

/// Waits for what the guard acts on: signals, and the end of the launcher's stream.
class GuardEvents {
 public:
  /// `signals`: a signalfd.
  GuardEvents(int stream, UniqueFd signals)
      : signals_(std::move(signals)),
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
  UniqueFd signals(signalfd(-1, &awaited, SFD_CLOEXEC));
  if (!signals) return fail_errno(errno, "watching the signals of the agent's guard");
  const UniqueFd replacements(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!replacements) return fail_errno(errno, "making a counter for the agent's guard");
  const pid_t guard = getpid();
  const ProcessTitle title;
  title.show(kGuardTitle);
  AgentCgroup cgroup;
  auto sweeper = Sweeper::start(stream, cgroup.info().path, title);
  const auto started = sweeper ? cgroup.fork_into() : Result<pid_t>(Failure(sweeper.error()));
  if (!started) {
    cgroup.end(Deadline::in(SteadyClock::instance(), kKillTime));
    if (sweeper) sweeper->dismiss();
    return Failure(Error(started.error()).context("starting the agent"));
  }
  const pid_t child = *started;
  if (child == 0) {
    title.restore(kAgentName);
    be_agent(agent, {.control_group = cgroup.info(), .replacements = replacements.value()}, guard,
             before);
  }
  GuardEvents events(stream, std::move(signals));
  for (;;) {
    const int number = events.next_signal();
    if (number == 0) kill(child, SIGKILL);
    if (number == SIGCHLD) {
      const auto status = reap(child, *sweeper, replacements.value());
      if (!status) continue;
      cgroup.end(Deadline::in(SteadyClock::instance(), kKillTime));
      sweeper->dismiss();
      kill_descendants(Deadline::in(SteadyClock::instance(), kKillTime));
      return WIFEXITED(*status) ? WEXITSTATUS(*status) : exit_code::kSignalBase + WTERMSIG(*status);
    }
    if (number > 0) kill(child, SIGTERM);
  }
}

}  // namespace horo::launcher
