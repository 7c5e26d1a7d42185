// SPDX-License-Identifier: Apache-2.0
#include "launcher/process/control_group.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <dirent.h>
#include <fcntl.h>
#include <fstream>
#include <linux/magic.h>
#include <linux/sched.h>
#include <memory>
#include <optional>
#include <poll.h>
#include <string_view>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

namespace horo::launcher {

namespace {

constexpr std::string_view kPrefix = "horo-";

/// The path may come from another process's message, so it is not trusted.
bool is_ours(const std::string& path) {
  return path.starts_with("/sys/fs/cgroup/") && path.find("/..") == std::string::npos &&
         path.substr(path.rfind('/') + 1).starts_with(kPrefix);
}

bool is_unified(const std::string& folder) {
  struct statfs status {};

  return statfs(folder.c_str(), &status) == 0 && status.f_type == CGROUP2_SUPER_MAGIC;
}

/// The folder of this process's own group; in a container, of the part that the container sees.
std::optional<std::string> own_folder() {
  std::string group;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (line.starts_with("0::/")) group = line.substr(3);
  }
  // A path with ".." is outside the part of the hierarchy that this process sees.
  if (group.empty() || group.find("/..") != std::string::npos) return std::nullopt;
  for (const std::string_view mount : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) {
    for (const std::string_view below : {std::string_view(group), std::string_view("/")}) {
      auto folder = fmt::format("{}{}", mount, below);
      if (folder.ends_with('/')) folder.pop_back();
      if (is_unified(folder)) return folder;
    }
  }
  return std::nullopt;
}

/// The subfolders of `path`. The subfolders of a group are groups.
std::vector<std::string> groups_below(const std::string& path) {
  std::vector<std::string> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(path.c_str()), closedir);
  if (!folder) return found;
  while (const dirent* entry = readdir(folder.get())) {
    if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
      found.push_back(fmt::format("{}/{}", path, entry->d_name));
  }
  return found;
}

/// Removes the group, its child groups first. False, with errno: EBUSY while it has a process.
bool remove_tree(const std::string& path) {
  if (rmdir(path.c_str()) == 0 || errno == ENOENT) return true;
  for (const auto& group : groups_below(path)) remove_tree(group);
  return rmdir(path.c_str()) == 0 || errno == ENOENT;
}

/// Kills one process after another, because cgroup.kill spares a process whose first thread has
/// ended while other threads run.
void kill_listed(const std::string& path) {
  std::ifstream list(path + "/cgroup.procs");
  for (pid_t pid = 0; list >> pid;) {
    if (pid > 0) kill(pid, SIGKILL);  // 0: a process of another PID namespace.
  }
  for (const auto& group : groups_below(path)) kill_listed(group);
}

void kill_members(const std::string& path) {
  const UniqueFd file(open((path + "/cgroup.kill").c_str(), O_WRONLY | O_CLOEXEC));
  if (file) [[maybe_unused]]
    const auto put = write(file.value(), "1", 1);
  kill_listed(path);
}

/// Waits until the group's last process is gone, or `most` has passed.
void wait_until_empty(const std::string& path, Duration most) {
  const UniqueFd file(open((path + "/cgroup.events").c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 256> text{};
  if (!file || read(file.value(), text.data(), text.size() - 1) <= 0) return;
  // "populated 0" while the group cannot be removed yet lasts only for moments.
  const bool populated = std::string_view(text.data()).find("populated 1") != std::string::npos;
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(most).count();
  pollfd changed{.fd = populated ? file.value() : -1, .events = POLLPRI, .revents = 0};
  poll(&changed, 1, populated ? static_cast<int>(milliseconds) : 1);
}

}  // namespace

Result<ControlGroup> ControlGroup::make() {
  const auto own = own_folder();
  if (!own) return fail(Errc::unsupported, "there is no cgroup v2 hierarchy below /sys/fs/cgroup");
  std::uint64_t random = 0;
  if (getrandom(&random, sizeof random, 0) != sizeof random)
    return fail_errno(errno, "drawing a control group's name");
  auto path = fmt::format("{}/{}{:016x}", *own, kPrefix, random);
  if (mkdir(path.c_str(), 0755) != 0) return fail_errno(errno, fmt::format("creating '{}'", path));
  if (access((path + "/cgroup.kill").c_str(), W_OK) != 0) {
    rmdir(path.c_str());
    return fail(Errc::unsupported, "this kernel's control groups have no cgroup.kill");
  }
  UniqueFd folder(open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder) {
    const int error = errno;
    rmdir(path.c_str());
    return fail_errno(error, fmt::format("opening '{}'", path));
  }
  return ControlGroup(std::move(path), std::move(folder));
}

Result<pid_t> ControlGroup::fork_into() const {
  clone_args arguments{};
  arguments.flags = CLONE_INTO_CGROUP;
  arguments.exit_signal = SIGCHLD;
  arguments.cgroup = static_cast<std::uint64_t>(folder_.value());
  // Moving a running process into a group would delay it by many milliseconds.
  const auto pid = syscall(SYS_clone3, &arguments, sizeof arguments);
  if (pid < 0) return fail_errno(errno, fmt::format("starting a process in '{}'", path_));
  return static_cast<pid_t>(pid);
}

void remove_stale_control_groups(const std::string& path) {
  constexpr time_t kYoung = 60;  // A younger group may belong to a job that starts.
  for (const auto& group : groups_below(path.substr(0, path.rfind('/')))) {
    struct stat status {};

    if (is_ours(group) && stat(group.c_str(), &status) == 0 &&
        status.st_mtime < time(nullptr) - kYoung)
      rmdir(group.c_str());
  }
}

void clear_control_group(const std::string& path) {
  if (!is_ours(path)) return;
  for (const auto& group : groups_below(path)) remove_tree(group);
}

bool end_control_group(const std::string& path, Deadline deadline) {
  constexpr Duration kRound = std::chrono::milliseconds(100);
  if (!is_ours(path)) return false;
  while (!remove_tree(path)) {
    if (errno != EBUSY) return false;
    const auto now = SteadyClock::instance().now();
    if (deadline.expired(now)) return false;
    kill_members(path);
    wait_until_empty(path, std::min(kRound, deadline.left(now)));
  }
  return true;
}

}  // namespace horo::launcher
