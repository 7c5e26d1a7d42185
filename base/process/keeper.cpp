// SPDX-License-Identifier: Apache-2.0
#include "base/process/keeper.hpp"

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <fcntl.h>
#include <poll.h>
#include <string_view>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "base/process/leave_descriptors.hpp"

extern char** environ;  // NOLINT(readability-redundant-declaration): some libcs do not declare it

namespace horo {

namespace {

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
int execute(const KeeperPlan& plan) {
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

[[noreturn]] void be_program(const KeeperPlan& plan, pid_t keeper, pid_t group, int& error) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != keeper) _exit(1);  // The keeper ended before the line above.
  drop_handlers(plan.fresh_with != nullptr ? Ignored::reset : Ignored::stay);
  if (setpgid(0, group) != 0 || !place(plan.streams) ||
      (plan.fresh_with != nullptr && !limit(*plan.fresh_with))) {
    error = errno;
    _exit(1);
  }
  sigprocmask(SIG_SETMASK, &plan.mask, nullptr);
  error = execute(plan);
  _exit(1);
}

// Each vfork is in a function of its own, so that the child cannot change variables in the caller's
// frame: the two share their memory until the child ends or executes a program.

[[gnu::noinline]] pid_t start_program(const KeeperPlan& plan, pid_t keeper, pid_t group,
                                      int& error) {
  const pid_t pid = vfork();
  if (pid == 0) be_program(plan, keeper, group, error);
  if (pid < 0) error = errno;
  return pid;
}

/// A process group whose leader has ended. The keeper does not reap the leader, so the group's
/// number is not given to others. The program itself cannot lead the group: a leader cannot begin a
/// session, and wrapper scripts execute setsid.
[[gnu::noinline]] pid_t make_group(int& error) {
  const pid_t pid = vfork();
  if (pid == 0) {
    setpgid(0, 0);
    _exit(0);
  }
  if (pid < 0) error = errno;
  return pid;
}

class Keeper {
 public:
  Keeper(const KeeperPlan& plan, int parent, int report)
      : plan_(plan), parent_(parent), report_(report) {}

  [[noreturn]] void run() {
    // A group of its own: "kill -9 0" in a script does not reach the keeper.
    setpgid(0, 0);
    std::signal(SIGCHLD, SIG_DFL);  // If it is ignored, the kernel keeps no wait status.
    plan_.title.show("job-keep");
    int error = prctl(PR_SET_CHILD_SUBREAPER, 1) == 0 ? 0 : errno;
    if (error == 0) group_ = make_group(error);
    if (error == 0) program_ = start_program(plan_, getpid(), group_, error);
    tell(error);
    if (error != 0) {
      reap(program_);
      leave();
    }
    tell(group_);
    auto what = What::all;
    if (keep_only() && watch_children()) {
      what = await_order();
      ending_ = true;
      if (plan_.grace_ms > 0) let_group_end();
    }
    kill(-group_, SIGKILL);
    if (what == What::all) kill_descendants();
    while (what == What::group && look()) await_child(-1);
    leave();
  }

 private:
  /// Everything that descends from the program is to end, or its process group only.
  enum class What : std::uint8_t { all, group };

  /// Reaps the group's leader, which the parent would get otherwise. The group is empty.
  [[noreturn]] void leave() const {
    reap(group_);
    _exit(0);
  }

  static void reap(pid_t ended) {
    while (ended > 0 && waitpid(ended, nullptr, 0) < 0 && errno == EINTR) {
    }
  }

  void tell(int number) const {
    while (write(report_, &number, sizeof number) < 0 && errno == EINTR) {
    }
  }

  /// Nothing but its own descriptors stays open: others wait for the end of what they refer to.
  bool keep_only() {
    if (!place({parent_, report_, report_})) return false;
    parent_ = STDIN_FILENO;
    report_ = STDOUT_FILENO;
    close_descriptors(STDERR_FILENO);
    return true;
  }

  bool watch_children() {
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGCHLD);
    signals_ = signalfd(-1, &ends, SFD_NONBLOCK);
    return signals_ >= 0;
  }

  /// Returns when the parent has ended, or needs the program no more.
  What await_order() {
    std::array<pollfd, 3> events{{{.fd = parent_, .events = POLLIN, .revents = 0},
                                  {.fd = report_, .events = POLLIN, .revents = 0},
                                  {.fd = signals_, .events = POLLIN, .revents = 0}}};
    for (;;) {
      look();
      if (poll(events.data(), events.size(), -1) <= 0) continue;
      if (events[0].revents == 0 && events[1].revents == 0) continue;
      look();
      // A parent that ends closes its socket a moment before it counts as ended.
      char order = 0;
      const bool released = recv(report_, &order, sizeof order, MSG_DONTWAIT) == sizeof order;
      // A program that has ended by itself may have left a service in a session of its own, such as
      // the shared connection of ssh.
      return released && has_exited_ ? What::group : What::all;
    }
  }

  /// Reaps children that have ended, also adopted ones, but not the group's leader. True if a
  /// process of the group is left.
  bool look() {
    signalfd_siginfo ignored{};
    [[maybe_unused]] const auto got = read(signals_, &ignored, sizeof ignored);
    if (program_ > 0) reap_program();
    bool left = program_ > 0;
    each_child([this, &left](pid_t pid) {
      if (pid == group_ || pid == program_ || waitpid(pid, nullptr, WNOHANG | __WALL) == pid)
        return;
      left = left || getpgid(pid) == group_;
    });
    return left;
  }

  void reap_program() {
    int status = 0;
    if (waitpid(program_, &status, WNOHANG) != program_) return;
    program_ = -1;
    has_exited_ = WIFEXITED(status);
    // A program that was told to end has no status of its own.
    if (!ending_) tell(status);
  }

  void await_child(int milliseconds) const {
    pollfd event{.fd = signals_, .events = POLLIN, .revents = 0};
    poll(&event, 1, milliseconds);
  }

  void let_group_end() {
    kill(-group_, SIGTERM);
    kill(-group_, SIGCONT);
    if (program_ > 0 && getpgid(program_) != group_) {  // It has begun a session.
      kill(program_, SIGTERM);
      kill(program_, SIGCONT);
    }
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::milliseconds(plan_.grace_ms);
    while (look()) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
      if (left <= 0) return;
      await_child(static_cast<int>(left));
    }
  }

  /// The children of a killed process become the keeper's, and are killed then.
  static void kill_descendants() {
    // If the kernel does not list them, all that can be done is to kill the group.
    while (each_child([](pid_t pid) { kill(pid, SIGKILL); })) {
      if (waitpid(-1, nullptr, __WALL) < 0 && errno != EINTR) return;
    }
  }

  /// Calls `task` for each child. False if the kernel does not list them.
  template <typename Task>
  static bool each_child(Task task) {
    const int list = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    if (list < 0) return false;
    std::array<char, 4096> text{};
    pid_t pid = 0;
    for (ssize_t size = 0; (size = read(list, text.data(), text.size())) > 0;) {
      for (const char c : std::string_view(text.data(), static_cast<std::size_t>(size))) {
        if (c >= '0' && c <= '9') {
          pid = pid * 10 + (c - '0');
        } else if (pid > 0) {
          task(std::exchange(pid, 0));
        }
      }
    }
    close(list);
    return true;
  }

  const KeeperPlan& plan_;
  int parent_;
  int report_;
  int signals_ = -1;         ///< A signalfd.
  pid_t group_ = -1;         ///< The program's process group.
  pid_t program_ = -1;       ///< -1: it has ended.
  bool has_exited_ = false;  ///< The program has ended by itself, not by a signal.
  bool ending_ = false;
};

}  // namespace

void run_keeper(const KeeperPlan& plan, int parent, int report) {
  Keeper(plan, parent, report).run();
}

}  // namespace horo
