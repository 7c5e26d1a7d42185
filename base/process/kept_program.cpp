// SPDX-License-Identifier: Apache-2.0
#include "base/process/kept_program.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <optional>
#include <poll.h>
#include <string_view>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "base/clock.hpp"
#include "base/process/keeper.hpp"

namespace horo {

namespace {

std::vector<std::string> candidates_of(const std::string& program) {
  if (program.find('/') != std::string::npos) return {program};
  const char* variable = std::getenv("PATH");
  const std::string_view path = variable == nullptr ? "/usr/local/bin:/usr/bin:/bin" : variable;
  std::vector<std::string> candidates;
  for (std::size_t start = 0; start <= path.size();) {
    const auto end = std::min(path.find(':', start), path.size());
    const auto folder = path.substr(start, end - start);
    candidates.push_back(fmt::format("{}/{}", folder.empty() ? "." : folder, program));
    start = end + 1;
  }
  return candidates;
}

Failure not_started(int error, const std::string& program) {
  if (error == ENOEXEC) {
    return fail(Errc::permission_denied,
                "it is not a program; a script must begin with #! and its interpreter");
  }
  if (error == ENOENT && program.find('/') == std::string::npos) {
    return fail(Errc::not_found,
                "there is no program '{}': give its path, or put its folder into PATH", program);
  }
  if (error == ENOENT)
    return fail(Errc::not_found, "it, or the interpreter that its first line names, is missing");
  if (error == EACCES) {
    return fail(Errc::permission_denied,
                "it, or the interpreter that its first line names, may not be executed");
  }
  if (error == EAGAIN) {
    return fail(Errc::unavailable,
                "starting it: no more processes; raise ulimit -u or the pids limit of the "
                "container");
  }
  return fail_errno(error, "starting it");
}

/// The keeper's next message; nullopt: there is none, and the keeper is gone.
std::optional<int> read_number(int report) {
  int number = 0;
  for (;;) {
    const auto got = read(report, &number, sizeof number);
    if (got == sizeof number) return number;
    if (got < 0 && errno == EINTR) continue;
    return std::nullopt;
  }
}

/// A keeper needs no time for its own work. One that was stopped by a signal never answers.
constexpr Duration kAnswerTime = std::chrono::seconds(2);

/// Waits for the end of the process, but not for one that was stopped.
void await(int process, Deadline deadline) {
  const auto& clock = SteadyClock::instance();
  pollfd event{.fd = process, .events = POLLIN, .revents = 0};
  for (auto left = deadline.left(clock.now()); left > Duration::zero();
       left = deadline.left(clock.now())) {
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    if (poll(&event, 1, static_cast<int>(ms)) >= 0 || errno != EINTR) return;
  }
}

void reap(pid_t child) {
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
}

UniqueFd pidfd_of(pid_t process) {
  return UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
}

/// Returns a pidfd of a new keeper. Fails: io; then the keeper is gone.
Result<UniqueFd> refer_to(pid_t keeper) {
  UniqueFd process = pidfd_of(keeper);
  if (process) return process;
  const int error = errno;
  kill(keeper, SIGKILL);  // The kernel kills the program with it.
  reap(keeper);
  return fail_errno(error, "starting it");
}

/// `command` outlives the plan.
KeeperPlan plan_for(const KeptCommand& command) {
  KeeperPlan plan;
  for (const auto& word : command.words) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): execve's signature
    plan.arguments.push_back(const_cast<char*>(word.c_str()));
  }
  plan.arguments.push_back(nullptr);
  plan.candidates = candidates_of(command.words.front());
  plan.fresh_with = command.fresh_with ? &*command.fresh_with : nullptr;
  plan.grace_ms = command.grace_ms;
  return plan;
}

constexpr const char* kKeeperLost = "the process that keeps it (job-keep) was killed";

}  // namespace

Result<KeptProgram> KeptProgram::start(const KeptCommand& command) {
  auto plan = plan_for(command);
  const UniqueFd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null) return fail_errno(errno, "opening /dev/null");
  plan.streams = {command.in < 0 ? null.value() : command.in, command.out, command.err};
  const UniqueFd self = pidfd_of(getpid());
  std::array<int, 2> ends{};
  if (!self && errno == ENOSYS)
    return fail(Errc::unsupported, "this kernel has no pidfd_open; Horo needs Linux 5.3 or later");
  if (!self || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return fail_errno(errno, "starting it");
  UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  sigset_t all;
  sigfillset(&all);
  sigset_t before;
  pthread_sigmask(SIG_SETMASK, &all, &before);
  if (plan.fresh_with == nullptr) plan.mask = before;
  const pid_t keeper = fork();
  if (keeper == 0) run_keeper(plan, self.value(), theirs.value());
  const int error = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (keeper < 0) return not_started(error, command.words.front());
  HORO_TRY(auto process, refer_to(keeper));
  setpgid(keeper, keeper);  // Fails if the keeper has done it and the program runs.
  KeptProgram program(keeper, std::move(process), std::move(ours), command.grace_ms);
  theirs.reset();
  const auto start_error = read_number(program.report_.value());
  if (!start_error) return fail(Errc::unavailable, "{}", kKeeperLost);
  if (*start_error != 0) return not_started(*start_error, command.words.front());
  const auto group = read_number(program.report_.value());
  if (!group) return fail(Errc::unavailable, "{}", kKeeperLost);
  program.group_ = *group;
  return program;
}

KeptProgram::KeptProgram(KeptProgram&& other) noexcept
    : keeper_(std::exchange(other.keeper_, -1)),
      process_(std::move(other.process_)),
      group_(other.group_),
      report_(std::move(other.report_)),
      grace_ms_(other.grace_ms_),
      answer_deadline_(other.answer_deadline_),
      released_(other.released_) {}

KeptProgram::~KeptProgram() {
  if (keeper_ < 0) return;
  if (release()) await(process_.value(), *answer_deadline_);
  if (!has_exited()) kill_group();
  reap(keeper_);
}

bool KeptProgram::has_exited() const {
  siginfo_t end{};
  int result = 0;
  while ((result = waitid(P_PID, static_cast<id_t>(keeper_), &end, WEXITED | WNOHANG | WNOWAIT)) <
             0 &&
         errno == EINTR) {
  }
  // Where a stranger has reaped it, the group's number may be another group's by now.
  return result < 0 || (end.si_pid != 0 && end.si_code == CLD_EXITED);
}

bool KeptProgram::release() {
  if (answer_deadline_) return released_;
  answer_deadline_ = Deadline::in(SteadyClock::instance(), answer_time());
  released_ = send(report_.value(), "", 1, MSG_NOSIGNAL) == 1;
  return released_;
}

Duration KeptProgram::answer_time() const {
  return kAnswerTime + std::chrono::milliseconds(grace_ms_);
}

void KeptProgram::kill_group() const {
  // Fails if a stranger has reaped the keeper.
  if (syscall(SYS_pidfd_send_signal, process_.value(), SIGKILL, nullptr, 0) != 0) return;
  if (group_ < 0) return;
  // The group's leader has ended before start() returned. A process of this number that runs is
  // another one, which has got the number since the group is gone.
  const auto leader = pidfd_of(group_);
  pollfd event{.fd = leader.value(), .events = POLLIN, .revents = 0};
  if (leader && poll(&event, 1, 0) == 0) return;
  kill(-group_, SIGKILL);
}

bool KeptProgram::is_over() const {
  siginfo_t end{};
  return waitid(P_PID, static_cast<id_t>(keeper_), &end, WEXITED | WNOHANG | WNOWAIT) != 0 ||
         end.si_pid != 0;
}

Result<int> KeptProgram::wait_status() const {
  const auto status = read_number(report_.value());
  if (!status) return fail(Errc::unavailable, "{}", kKeeperLost);
  return *status;
}

void EndingPrograms::add(KeptProgram program) {
  forget_those_over();
  program.release();
  programs_.push_back(std::move(program));
}

std::vector<int> EndingPrograms::keepers() {
  forget_those_over();
  std::vector<int> keepers;
  for (const auto& program : programs_) keepers.push_back(program.keeper());
  return keepers;
}

void EndingPrograms::forget_those_over() {
  programs_.remove_if([](const KeptProgram& program) { return program.is_over(); });
}

}  // namespace horo
