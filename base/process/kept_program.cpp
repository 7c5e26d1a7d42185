// SPDX-License-Identifier: Apache-2.0
#include "base/process/kept_program.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <optional>
#include <poll.h>
#include <string_view>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "base/process/leave_descriptors.hpp"
#include "base/process/process_title.hpp"

extern char** environ;  // NOLINT(readability-redundant-declaration): some libcs do not declare it

namespace horo {

namespace {

/// All that keeper and program need, prepared before the fork: a child of a program with several
/// threads may neither allocate nor lock.
struct Plan {
  std::vector<char*> arguments;
  std::vector<std::string> candidates;  ///< Paths of the program, in the order of PATH.
  std::array<int, 3> streams{};
  sigset_t mask{};  ///< The program's signal mask; empty at first.
  const rlimit* fresh_with = nullptr;
  int grace_ms = 0;
  ProcessTitle title;
};

/// The program ignores the signals that this process ignores, or none.
enum class Ignored : std::uint8_t { stay, reset };

/// A handler of this process must not run in the program's process.
void drop_handlers(Ignored ignored) {
  struct sigaction standard {};

  standard.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction now {};

    if (sigaction(number, nullptr, &now) != 0) continue;
    if (ignored == Ignored::reset || now.sa_handler != SIG_IGN)
      sigaction(number, &standard, nullptr);
  }
}

/// A stream may have the number of another, so all are copied above them first.
bool place(std::array<int, 3> streams) {
  for (int& stream : streams) {
    stream = fcntl(stream, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (stream < 0) return false;
  }
  for (int to = 0; to < 3; ++to) {
    if (dup2(streams[static_cast<std::size_t>(to)], to) < 0) return false;
  }
  return true;
}

/// Leaves the program its streams and this limit of descriptors.
bool limit(const rlimit& limits) {
  close_descriptors_at_exec(STDERR_FILENO + 1);
  return setrlimit(RLIMIT_NOFILE, &limits) == 0;
}

/// Like execvp, but a file of an unknown format is not given to a shell. Returns the error.
int execute(const Plan& plan) {
  int error = ENOENT;
  for (const auto& path : plan.candidates) {
    execve(path.c_str(), plan.arguments.data(), environ);
    if (errno == EACCES) {
      error = EACCES;
    } else if (errno != ENOENT && errno != ENOTDIR) {
      return errno;
    }
  }
  return error;
}

[[noreturn]] void be_program(const Plan& plan, pid_t keeper, int& error) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != keeper) _exit(1);  // The keeper ended before the line above.
  drop_handlers(plan.fresh_with != nullptr ? Ignored::reset : Ignored::stay);
  if (!place(plan.streams) || (plan.fresh_with != nullptr && !limit(*plan.fresh_with))) {
    error = errno;
    _exit(1);
  }
  sigprocmask(SIG_SETMASK, &plan.mask, nullptr);
  error = execute(plan);
  _exit(1);
}

/// A function of its own, so that the program's process cannot change variables in the caller's
/// frame. The two share their memory until the program is executed.
[[gnu::noinline]] pid_t start_program(const Plan& plan, pid_t keeper, int& error) {
  const pid_t pid = vfork();
  if (pid == 0) be_program(plan, keeper, error);
  if (pid < 0) error = errno;
  return pid;
}

/// The keeper. It makes only calls that are allowed after a fork of a program with several threads.
class Keeper {
 public:
  [[noreturn]] static void run(const Plan& plan, int parent, int report) {
    // All signals are blocked here, so that "kill 0" in a script does not end the keeper.
    setpgid(0, 0);
    std::signal(SIGCHLD, SIG_DFL);  // If it is ignored, the kernel keeps no wait status.
    plan.title.show("job-keep");
    int error = prctl(PR_SET_CHILD_SUBREAPER, 1) == 0 ? 0 : errno;
    pid_t program = -1;
    if (error == 0) program = start_program(plan, getpid(), error);
    tell(report, error);
    if (error != 0) _exit(0);
    const int signals = keep_only(parent, report) ? watch_children() : -1;
    if (signals >= 0) {
      const bool running = await_parent(program, signals);
      if (running && plan.grace_ms > 0) let_end(program, signals, plan.grace_ms);
    }
    kill_descendants();
    _exit(0);
  }

 private:
  static void tell(int report, int number) {
    while (write(report, &number, sizeof number) < 0 && errno == EINTR) {
    }
  }

  /// Nothing but its own descriptors stays open: others wait for the end of what they refer to.
  static bool keep_only(int parent, int report) {
    if (!place({parent, report, report})) return false;
    close_descriptors(STDERR_FILENO);
    return true;
  }

  /// A signalfd; -1: there is none.
  static int watch_children() {
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGCHLD);
    return signalfd(-1, &ends, SFD_NONBLOCK);
  }

  /// Returns when the parent has ended, or needs the program no more: whether the program still
  /// runs and may have some time to end.
  static bool await_parent(pid_t program, int signals) {
    std::array<pollfd, 3> events{{{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0},
                                  {.fd = STDOUT_FILENO, .events = POLLIN, .revents = 0},
                                  {.fd = signals, .events = POLLIN, .revents = 0}}};
    for (bool running = true;;) {
      if (reap(program, signals)) running = false;
      if (poll(events.data(), events.size(), -1) <= 0) continue;
      if (events[0].revents != 0) return running;
      if (events[1].revents == 0) continue;
      // A program that has ended by itself may have left a service in a session of its own, such as
      // the shared connection of ssh. Only its process group, this process among it, goes with it.
      if (!running) kill(0, SIGKILL);
      return false;
    }
  }

  /// Adopted orphans are reaped too. True when the program was among the reaped.
  static bool reap(pid_t program, int signals) {
    signalfd_siginfo ignored{};
    [[maybe_unused]] const auto got = read(signals, &ignored, sizeof ignored);
    bool ended = false;
    int status = 0;
    for (pid_t pid = 0; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
      if (pid != program) continue;
      tell(STDOUT_FILENO, status);
      ended = true;
    }
    return ended;
  }

  static void let_end(pid_t program, int signals, int milliseconds) {
    kill(program, SIGTERM);
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
    pollfd event{.fd = signals, .events = POLLIN, .revents = 0};
    while (!reap(program, signals)) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          end - std::chrono::steady_clock::now());
      if (left.count() <= 0) return;
      poll(&event, 1, static_cast<int>(left.count()));
    }
  }

  /// The children of a killed process become the keeper's, and are killed then.
  static void kill_descendants() {
    do {
      if (!kill_children()) kill(0, SIGKILL);
    } while (waitpid(-1, nullptr, __WALL) >= 0 || errno == EINTR);
  }

  /// False if the kernel does not list the children.
  static bool kill_children() {
    const int list = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    if (list < 0) return false;
    std::array<char, 4096> text{};
    pid_t pid = 0;
    for (ssize_t size = 0; (size = read(list, text.data(), text.size())) > 0;) {
      for (const char c : std::string_view(text.data(), static_cast<std::size_t>(size))) {
        if (c >= '0' && c <= '9') {
          pid = pid * 10 + (c - '0');
        } else if (pid > 0) {
          kill(std::exchange(pid, 0), SIGKILL);
        }
      }
    }
    close(list);
    return true;
  }
};

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

/// Waits for the end of the process, but not for one that was stopped.
void await(int process) {
  constexpr auto kMost = std::chrono::seconds(2);
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + kMost;
  pollfd event{.fd = process, .events = POLLIN, .revents = 0};
  for (auto left = end - Clock::now(); left > Clock::duration::zero(); left = end - Clock::now()) {
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    if (poll(&event, 1, static_cast<int>(ms)) >= 0 || errno != EINTR) return;
  }
}

constexpr const char* kKeeperLost = "the process that keeps it (job-keep) was killed";

}  // namespace

Result<KeptProgram> KeptProgram::start(const KeptCommand& command) {
  Plan plan;
  for (const auto& word : command.words) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): execve's signature
    plan.arguments.push_back(const_cast<char*>(word.c_str()));
  }
  plan.arguments.push_back(nullptr);
  plan.candidates = candidates_of(command.words.front());
  plan.fresh_with = command.fresh_with ? &*command.fresh_with : nullptr;
  plan.grace_ms = command.grace_ms;
  const UniqueFd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null) return fail_errno(errno, "opening /dev/null");
  plan.streams = {command.in < 0 ? null.value() : command.in, command.out, command.err};
  const UniqueFd self(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0)));
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
  if (keeper == 0) Keeper::run(plan, self.value(), theirs.value());
  const int error = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (keeper < 0) return not_started(error, command.words.front());
  setpgid(keeper, keeper);  // Fails if the keeper has done it and the program runs.
  KeptProgram program(keeper, std::move(ours));
  theirs.reset();
  const auto start_error = read_number(program.report_.value());
  if (!start_error) return fail(Errc::unavailable, "{}", kKeeperLost);
  if (*start_error != 0) return not_started(*start_error, command.words.front());
  return program;
}

KeptProgram::KeptProgram(KeptProgram&& other) noexcept
    : keeper_(std::exchange(other.keeper_, -1)), report_(std::move(other.report_)) {}

KeptProgram::~KeptProgram() {
  if (keeper_ < 0) return;
  const UniqueFd keeper(static_cast<int>(syscall(SYS_pidfd_open, keeper_, 0)));
  if (keeper && release()) await(keeper.value());
  kill_group();
  while (waitpid(keeper_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

bool KeptProgram::release() const {
  return send(report_.value(), "", 1, MSG_NOSIGNAL) == 1;
}

void KeptProgram::kill_group() const {
  kill(-keeper_, SIGKILL);
}

Result<int> KeptProgram::wait_status() const {
  const auto status = read_number(report_.value());
  if (!status) return fail(Errc::unavailable, "{}", kKeeperLost);
  return *status;
}

}  // namespace horo
