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
#include "launcher/agent/enclosure.hpp"
#include "launcher/process/descendants.hpp"
#include "launcher/process/unique_fd.hpp"

namespace horo::launcher {

namespace {

using namespace std::chrono_literals;

constexpr Duration kAgentsEnd = 2s;  ///< For an agent to end once the launcher is gone.
constexpr Duration kPatience = 10s;  ///< For the kernel to end processes that have got SIGKILL.

/// A batch system's signals go to every process of a job. Ranks get theirs back: spawn_process sets
/// the defaults.
void ignore(std::initializer_list<int> numbers) {
  for (const int number : numbers) std::signal(number, SIG_IGN);
}

using AgentMain = std::function<int(const Cover&)>;

[[noreturn]] void be_agent(const AgentMain& agent, const Cover& cover, pid_t guard,
                           const sigset_t& mask) {
  // A group of its own: whoever kills the guard's group leaves this half to clean up.
  setpgid(0, 0);
  prctl(PR_SET_NAME, "horo-agent");
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != guard)
    _exit(1);  // It ended before the line above; nothing has been started yet.
  if (!become_subreaper()) _exit(1);
  ignore({SIGINT, SIGHUP});  // The guard has got them too, and passes them on.
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  _exit(agent(cover));
}

/// Reaps the agent, and orphans that were handed up to us. The agent's wait status once it has
/// ended.
std::optional<int> reap(pid_t agent) {
  for (;;) {
    int status = 0;
    const pid_t pid = waitpid(-1, &status, WNOHANG);
    if (pid == agent) return status;
    if (pid <= 0) return std::nullopt;
  }
}

/// What the guard waits for: signals, and the end of the launcher's stream.
class Watch {
 public:
  Watch(int stream, const sigset_t& awaited)
      : signals_(signalfd(-1, &awaited, SFD_CLOEXEC)),
        polled_{{{.fd = signals_.value(), .events = POLLIN, .revents = 0},
                 {.fd = stream, .events = POLLRDHUP, .revents = 0}}} {}

  /// The next signal; 0, once: the agent should have ended long ago.
  int next_signal() {
    for (;;) {
      const int ready = poll(polled_.data(), polled_.size(), patience());
      if (ready == 0) {
        agents_end_.reset();
        return 0;
      }
      if (polled_[1].revents != 0) {
        polled_[1].fd = -1;  // poll skips it from here on.
        polled_[1].revents = 0;
        agents_end_ = Deadline::in(SteadyClock::instance(), kAgentsEnd);
      }
      signalfd_siginfo info{};
      if (ready > 0 && polled_[0].revents != 0 &&
          read(signals_.value(), &info, sizeof info) == sizeof info)
        return static_cast<int>(info.ssi_signo);
    }
  }

 private:
  /// In milliseconds, as poll has it.
  int patience() const {
    if (!agents_end_) return -1;
    const auto left = agents_end_->left(SteadyClock::instance().now());
    return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count());
  }

  const UniqueFd signals_;
  std::array<pollfd, 2> polled_;
  std::optional<Deadline> agents_end_;
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
  Enclosure enclosure;
  const auto started = enclosure.fork_into();
  if (!started) return Failure(Error(started.error()).context("starting the agent"));
  const pid_t child = *started;
  if (child == 0) be_agent(agent, enclosure.cover(), guard, before);
  prctl(PR_SET_NAME, "horo-guard");
  Watch watch(stream, awaited);
  for (;;) {
    const int number = watch.next_signal();
    if (number == 0) kill(child, SIGKILL);
    if (number == SIGCHLD) {
      const auto status = reap(child);
      if (!status) continue;
      enclosure.end(Deadline::in(SteadyClock::instance(), kPatience));
      kill_descendants(Deadline::in(SteadyClock::instance(), kPatience));
      return WIFEXITED(*status) ? WEXITSTATUS(*status) : exit_code::kSignalBase + WTERMSIG(*status);
    }
    if (number > 0) kill(child, SIGTERM);
  }
}

}  // namespace horo::launcher
