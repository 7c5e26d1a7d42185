// SPDX-License-Identifier: Apache-2.0
#include "launcher/ranks/oom_watch.hpp"

#include <array>
#include <fstream>
#include <string_view>
#include <unistd.h>

#include <fmt/format.h>

namespace horo::launcher {

namespace {

/// Finds the file with the counter for this process. /proc/self/cgroup has "0::/path" for v2 and
/// "4:memory:/path" for v1. In a container the path may be that of the host, while the group is
/// mounted as the root.
std::string find_counter() {
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const auto controllers = fmt::format(",{},", line.substr(first + 1, second - first - 1));
    const auto path = line.substr(second + 1);
    const auto memory = controllers.find(",memory,") != std::string::npos;
    if (!memory && controllers != ",,") continue;
    const std::string_view name = memory ? "memory.oom_control" : "memory.events";
    for (const std::string_view mount :
         {"/sys/fs/cgroup/memory", "/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) {
      // A v2 group without the controller has no counter: a group above it counts for it.
      for (auto group = path == "/" ? std::string() : path;; group.resize(group.rfind('/'))) {
        auto file = fmt::format("{}{}/{}", mount, group, name);
        if (access(file.c_str(), R_OK) == 0) return file;
        if (group.empty()) break;
      }
    }
  }
  return {};
}

}  // namespace

OomWatch::OomWatch() : path_(find_counter()), seen_(read_counter()) {}

std::uint64_t OomWatch::read_counter() const {
  if (path_.empty()) return 0;
  std::ifstream file(path_);
  std::string key;
  std::uint64_t value = 0;
  while (file >> key >> value) {
    if (key == "oom_kill") return value;
  }
  return 0;
}

bool OomWatch::take_kill() {
  if (read_counter() <= seen_) return false;
  ++seen_;
  return true;
}

}  // namespace horo::launcher
