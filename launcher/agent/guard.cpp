// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/guard.hpp"

#include <cerrno>
#include <csignal>
#include <initializer_list>
#include <optional>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/exit_code.hpp"
#include "launcher/agent/enclosure.hpp"
#include "launcher/process/descendants.hpp"

namespace horo::launcher {

namespace {

using namespace std::chrono_literals;

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

}  // namespace

Result<int> run_guarded(const AgentMain& agent) {
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
  for (;;) {
    const int number = sigwaitinfo(&awaited, nullptr);
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
