// SPDX-License-Identifier: Apache-2.0
#include "launcher/process/spawn.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <map>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process/leave_descriptors.hpp"
#include "launcher/process/execute_failure.hpp"

namespace horo::launcher {

namespace {

enum class Stage { none, descriptors, limit, affinity, directory, execute };

/// All that the child needs, prepared before vfork: until exec the child shares the parent's memory
/// and may neither allocate nor lock.
struct ChildPlan {
  const std::vector<const char*>& candidates;
  char* const* arguments;
  char* const* environment;
  const char* directory;
  const std::vector<Inherited>& descriptors;
  std::vector<int>& copies;  ///< Has room for one copy per descriptor.
  int above;                 ///< Greater than every target number.
  int death_signal;
  pid_t parent;
  const rlimit* descriptor_limit;
  const std::vector<cpu_set_t>& cpus;  ///< Empty: the parent's.
};

struct ChildFailure {
  Stage stage = Stage::none;
  int error = 0;
};

void reset_signals() {
  struct sigaction standard {};

  standard.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) {
    if (number != SIGKILL && number != SIGSTOP) sigaction(number, &standard, nullptr);
  }
}

bool bind(const std::vector<cpu_set_t>& cpus) {
  return cpus.empty() || sched_setaffinity(0, cpus.size() * sizeof(cpu_set_t), cpus.data()) == 0;
}

bool enter(const char* directory) {
  return directory == nullptr || chdir(directory) == 0;
}

bool place_descriptors(const ChildPlan& plan) {
  // A source may have the number of another target. So all sources are first copied above all
  // targets, and then to their targets.
  for (std::size_t i = 0; i < plan.descriptors.size(); ++i) {
    plan.copies[i] = fcntl(plan.descriptors[i].from, F_DUPFD_CLOEXEC, plan.above);
    if (plan.copies[i] < 0) return false;
  }
  close_descriptors_at_exec(STDERR_FILENO + 1);
  for (std::size_t i = 0; i < plan.descriptors.size(); ++i) {
    if (dup2(plan.copies[i], plan.descriptors[i].to) < 0) return false;
  }
  return true;
}

/// Like execvp, but a file of an unknown format is not given to a shell.
int execute(const ChildPlan& plan) {
  int error = ENOENT;
  for (const char* path : plan.candidates) {
    execve(path, plan.arguments, plan.environment);
    if (errno == EACCES) {
      error = EACCES;
    } else if (errno != ENOENT && errno != ENOTDIR) {
      return errno;
    }
  }
  return error;
}

[[noreturn]] void run_child(const ChildPlan& plan, ChildFailure& failure) {
  setpgid(0, 0);
  reset_signals();
  if (plan.death_signal != 0) {
    prctl(PR_SET_PDEATHSIG, plan.death_signal);
    if (getppid() != plan.parent) _exit(1);  // The parent ended before the line above.
  }
  failure.stage = Stage::descriptors;
  if (place_descriptors(plan)) {
    failure.stage = Stage::limit;
    if (plan.descriptor_limit == nullptr || setrlimit(RLIMIT_NOFILE, plan.descriptor_limit) == 0) {
      failure.stage = Stage::affinity;
      if (bind(plan.cpus)) {
        failure.stage = Stage::directory;
        if (enter(plan.directory)) {
          failure.stage = Stage::execute;
          sigset_t none;
          sigemptyset(&none);
          sigprocmask(SIG_SETMASK, &none, nullptr);
          errno = execute(plan);
        }
      }
    }
  }
  failure.error = errno;
  _exit(127);
}

/// A function of its own, so that the child cannot change variables in the caller's frame.
[[gnu::noinline]] pid_t start_child(const ChildPlan& plan, ChildFailure& failure) {
  const pid_t pid = vfork();
  if (pid == 0) run_child(plan, failure);
  return pid;
}

std::vector<std::string> candidates_of(const std::string& program, const std::string& search_path) {
  if (program.find('/') != std::string::npos) return {program};
  std::vector<std::string> paths;
  for (std::size_t start = 0; start <= search_path.size();) {
    const auto end = std::min(search_path.find(':', start), search_path.size());
    const auto folder = search_path.substr(start, end - start);
    paths.push_back((folder.empty() ? "." : folder) + "/" + program);
    start = end + 1;
  }
  return paths;
}

Failure child_failure(const ChildFailure& failure, const Command& command,
                      const std::vector<std::string>& candidates) {
  switch (failure.stage) {
    case Stage::descriptors:
      if (failure.error == EMFILE || failure.error == EINVAL || failure.error == EBADF) {
        return fail(Errc::unavailable, "starting '{}': too few descriptors; raise ulimit -n",
                    command.arguments.front());
      }
      return fail_errno(failure.error, "handing descriptors to a child");
    case Stage::limit:
      return fail(Errc::io, "setting a child's descriptor limit: {}",
                  std::generic_category().message(failure.error));
    case Stage::affinity:
      return fail(Errc::io, "binding to {} hardware threads from {} on: {}", command.cpus.size(),
                  command.cpus.front(), std::generic_category().message(failure.error));
    case Stage::directory:
      return fail(Errc::io, "entering the working directory '{}': {}", command.directory,
                  std::generic_category().message(failure.error));
    case Stage::none:
    case Stage::execute:
      break;
  }
  return execute_failure(failure.error, command, candidates);
}

/// Blocks every signal while it lives: a handler of this process must not run in a child that
/// shares its memory.
class AllSignalsBlocked {
 public:
  AllSignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }

  ~AllSignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

std::vector<cpu_set_t> mask_of(const std::vector<int>& cpus) {
  std::vector<cpu_set_t> mask;
  for (const int cpu : cpus) {
    const auto number = static_cast<std::size_t>(cpu);
    // A large CPU set is an array of cpu_set_t, whose bits follow each other.
    while (mask.size() * CPU_SETSIZE <= number) CPU_ZERO(&mask.emplace_back());
    CPU_SET_S(number, mask.size() * sizeof(cpu_set_t), mask.data());
  }
  return mask;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> list;
  list.reserve(strings.size() + 1);
  for (auto& text : strings) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

/// "NAME=value" once per name; the last value of a name counts.
std::vector<std::string> merged_variables(const Environment& environment) {
  std::map<std::string_view, std::string_view> merged;
  for (const auto& [name, value] : environment) merged[name] = value;
  std::vector<std::string> variables;
  variables.reserve(merged.size());
  for (const auto& [name, value] : merged) variables.push_back(fmt::format("{}={}", name, value));
  return variables;
}

std::string path_of(const Environment& environment) {
  const auto is_path = [](const auto& variable) { return variable.first == "PATH"; };
  const auto last = std::find_if(environment.rbegin(), environment.rend(), is_path);
  return last == environment.rend() ? "/usr/local/bin:/usr/bin:/bin" : last->second;
}

int above_targets(const std::vector<Inherited>& descriptors) {
  int above = 3;
  for (const auto& descriptor : descriptors) above = std::max(above, descriptor.to + 1);
  return above;
}

Failure start_failed(int error, const std::string& program) {
  if (error != EAGAIN) return fail_errno(error, fmt::format("starting '{}'", program));
  return fail(
      Errc::unavailable,
      "starting '{}': no more processes; raise ulimit -u or the pids limit of the container",
      program);
}

}  // namespace

Result<pid_t> spawn_process(const Command& command, const std::vector<Inherited>& descriptors) {
  HORO_CHECK(!command.arguments.empty());
  auto variables = merged_variables(command.environment);
  auto arguments = command.arguments;
  const auto candidates = candidates_of(arguments.front(), path_of(command.environment));
  std::vector<const char*> candidate_pointers;
  for (const auto& candidate : candidates) candidate_pointers.push_back(candidate.c_str());
  const auto argument_pointers = pointers(arguments);
  const auto variable_pointers = pointers(variables);
  std::vector<int> copies(descriptors.size(), -1);
  const auto mask = mask_of(command.cpus);
  const ChildPlan plan{
      .candidates = candidate_pointers,
      .arguments = argument_pointers.data(),
      .environment = variable_pointers.data(),
      .directory = command.directory.empty() ? nullptr : command.directory.c_str(),
      .descriptors = descriptors,
      .copies = copies,
      .above = above_targets(descriptors),
      .death_signal = command.parent_death_signal,
      .parent = getpid(),
      .descriptor_limit = command.descriptor_limit ? &*command.descriptor_limit : nullptr,
      .cpus = mask};
  ChildFailure failure;
  pid_t pid = -1;
  int error = 0;
  {
    const AllSignalsBlocked blocked;
    pid = start_child(plan, failure);
    error = errno;
  }
  if (pid < 0) return start_failed(error, command.arguments.front());
  if (failure.error == 0) return pid;
  waitpid(pid, nullptr, 0);
  return child_failure(failure, command, candidates);
}

namespace {

std::optional<rlimit>& limit_before_raise() {
  static std::optional<rlimit> limit;
  return limit;
}

}  // namespace

Result<rlimit> raise_descriptor_limit() {
  const rlimit before = first_descriptor_limit();
  const rlimit raised{.rlim_cur = before.rlim_max, .rlim_max = before.rlim_max};
  if (before.rlim_cur < before.rlim_max && setrlimit(RLIMIT_NOFILE, &raised) != 0) {
    return fail_errno(errno, "raising the descriptor limit");
  }
  limit_before_raise() = before;
  return before;
}

Environment own_environment() {
  Environment environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const auto equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    environment.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

rlimit first_descriptor_limit() {
  if (limit_before_raise()) return *limit_before_raise();
  rlimit now{};
  getrlimit(RLIMIT_NOFILE, &now);
  return now;
}

}  // namespace horo::launcher
