// SPDX-License-Identifier: Apache-2.0
#include "launcher/process/descendants.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <dirent.h>
#include <fcntl.h>
#include <fstream>
#include <memory>
#include <optional>
#include <poll.h>
#include <string_view>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/unique_fd.hpp"

namespace horo::launcher {

namespace {

struct ProcessStat {
  pid_t pid = 0;
  pid_t parent = 0;
  char state = '?';
  int threads = 1;

  /// A process whose first thread has ended looks like a zombie while its other threads run.
  bool alive() const { return (state != 'Z' && state != 'X') || threads > 1; }
};

/// Field `number` of `text`, counted from 1; spaces separate the fields. Empty: there is none.
std::string_view field(std::string_view text, int number) {
  for (; number > 1 && !text.empty(); --number)
    text.remove_prefix(std::min(text.size(), text.find(' ')) + (text.find(' ') < text.size()));
  return text.substr(0, text.find(' '));
}

template <typename T>
void read_number(std::string_view text, T& number) {
  std::from_chars(text.data(), text.data() + text.size(), number);
}

/// "pid (name) state parent ... threads ...": the name may hold spaces and parentheses.
std::optional<ProcessStat> read_stat(int proc, const char* pid_text) {
  std::array<char, 64> path{};
  fmt::format_to_n(path.data(), path.size() - 1, "{}/stat", pid_text);
  const UniqueFd file(openat(proc, path.data(), O_RDONLY | O_CLOEXEC));
  if (!file) return std::nullopt;
  std::array<char, 512> text{};
  const auto got = read(file.value(), text.data(), text.size());
  if (got <= 0) return std::nullopt;
  const std::string_view line(text.data(), static_cast<std::size_t>(got));
  const auto name_end = line.rfind(") ");
  if (name_end == std::string_view::npos || name_end + 5 > line.size()) return std::nullopt;
  const auto rest = line.substr(name_end + 2);
  ProcessStat stat;
  stat.state = rest.front();
  read_number(pid_text, stat.pid);
  read_number(field(rest, 2), stat.parent);
  read_number(field(rest, 18), stat.threads);
  return stat;
}

/// Reaps all children that have ended. False when there is no child, and so no descendant, left.
bool reap_children() {
  for (;;) {
    const pid_t pid = waitpid(-1, nullptr, WNOHANG | __WALL);
    if (pid == 0) return true;
    if (pid < 0 && errno != EINTR) return errno != ECHILD;
  }
}

constexpr Duration kRound = std::chrono::milliseconds(100);  ///< Then it looks for new forks.

/// Waits until all of `pids` have ended, or `most` has passed. Without pids, waits for a moment.
void wait_for_all(const std::vector<pid_t>& pids, Duration most) {
  std::vector<UniqueFd> handles;
  std::vector<pollfd> polled;
  for (const pid_t pid : pids) {
    UniqueFd handle(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    if (!handle) continue;  // It has ended.
    polled.push_back({.fd = handle.value(), .events = POLLIN, .revents = 0});
    handles.push_back(std::move(handle));
  }
  if (polled.empty()) poll(nullptr, 0, 1);
  const auto& clock = SteadyClock::instance();
  const auto deadline = Deadline::in(clock, most);
  for (std::size_t ended = 0; ended < polled.size();) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline.left(clock.now())).count();
    if (left == 0 || poll(polled.data(), polled.size(), static_cast<int>(left)) <= 0) return;
    for (auto& entry : polled) {
      if (entry.fd < 0 || entry.revents == 0) continue;
      entry.fd = -1;  // From now on poll skips this entry.
      ++ended;
    }
  }
}

}  // namespace

bool has_variable(pid_t pid, std::string_view variable) {
  std::ifstream file(fmt::format("/proc/{}/environ", pid), std::ios::binary);
  for (std::string entry; std::getline(file, entry, '\0');) {
    if (entry == variable) return true;
  }
  return false;
}

Status become_subreaper() {
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return fail_errno(errno, "becoming a child subreaper");
  return {};
}

Result<ProcessTree> ProcessTree::look() {
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(opendir("/proc"), closedir);
  if (!proc) return fail_errno(errno, "reading /proc");
  ProcessTree family;
  while (const dirent* entry = readdir(proc.get())) {
    if (entry->d_name[0] < '0' || entry->d_name[0] > '9') continue;
    const auto stat = read_stat(dirfd(proc.get()), entry->d_name);
    if (stat) family.children_[stat->parent].push_back({stat->pid, stat->alive()});
  }
  return family;
}

std::vector<pid_t> ProcessTree::ended_children(pid_t parent) const {
  std::vector<pid_t> ended;
  const auto children = children_.find(parent);
  if (children == children_.end()) return ended;
  for (const auto& child : children->second) {
    if (!child.alive) ended.push_back(child.pid);
  }
  return ended;
}

std::vector<pid_t> ProcessTree::below(pid_t ancestor, const std::vector<pid_t>& spared) const {
  std::vector<pid_t> line{
      ancestor};  // Also the queue: the children of each entry are added behind it.
  std::vector<pid_t> living;
  for (std::size_t next = 0; next < line.size(); ++next) {
    const auto children = children_.find(line[next]);
    if (children == children_.end()) continue;
    for (const auto& child : children->second) {
      if (std::find(spared.begin(), spared.end(), child.pid) != spared.end()) continue;
      line.push_back(child.pid);
      if (child.alive) living.push_back(child.pid);
    }
  }
  return living;
}

void signal_descendants(pid_t ancestor, int number, const std::vector<pid_t>& spared) {
  const auto family = ProcessTree::look();
  if (!family) return;
  for (const pid_t pid : family->below(ancestor, spared)) kill(pid, number);
}

namespace {

/// Looks again after an error, such as a lack of descriptors, which may pass.
Result<ProcessTree> look_until(Deadline deadline) {
  for (;;) {
    auto family = ProcessTree::look();
    if (family || deadline.expired(SteadyClock::instance().now())) return family;
    poll(nullptr, 0, 1);
  }
}

/// Reaps children that have ended. True if there may be others left than the spared ones.
bool reap_others(const ProcessTree& family, const std::vector<pid_t>& spared) {
  for (const pid_t pid : family.ended_children(getpid())) {
    if (std::find(spared.begin(), spared.end(), pid) == spared.end())
      waitpid(pid, nullptr, WNOHANG);
  }
  return !family.below(getpid(), spared).empty();
}

}  // namespace

int kill_descendants(Deadline deadline, const std::vector<pid_t>& spared) {
  while (!spared.empty() || reap_children()) {
    const auto family = look_until(deadline);
    const auto now = SteadyClock::instance().now();
    if (!family) return 1;
    if (!spared.empty() && !reap_others(*family, spared)) return 0;
    const auto living = family->below(getpid(), spared);
    for (const pid_t pid : living) kill(pid, SIGKILL);
    if (deadline.expired(now)) return static_cast<int>(living.size());
    wait_for_all(living, std::min(kRound, deadline.left(now)));
  }
  return 0;
}

int kill_descendants_with(std::string_view variable, Deadline deadline) {
  for (;;) {
    const auto family = look_until(deadline);
    if (!family) return 1;
    auto marked = family->below(getpid());
    std::erase_if(marked, [&](pid_t pid) { return !has_variable(pid, variable); });
    if (marked.empty()) return 0;
    for (const pid_t pid : marked) kill(pid, SIGKILL);
    const auto now = SteadyClock::instance().now();
    if (deadline.expired(now)) return static_cast<int>(marked.size());
    wait_for_all(marked, std::min(kRound, deadline.left(now)));
    for (const pid_t pid : marked)
      waitpid(pid, nullptr, WNOHANG);  // Fails for descendants that are not children.
  }
}

}  // namespace horo::launcher
