// SPDX-License-Identifier: Apache-2.0
#include "apps/common/running_job/find_job.hpp"

#include <algorithm>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/ranges.h>

#include "timeline/record/region.hpp"

namespace horo::apps {

namespace {

namespace fs = std::filesystem;

std::string job_of(int fd, int regions) {
  for (int i = 0; i < regions; ++i) {
    if (const auto reader = timeline::RegionReader::open(fd, i))
      return reader->about().identity.job_text();
  }
  return {};
}

/// The memory of all ranks that have begun to record; each memory is listed once.
std::vector<JobMemory> all_memories() {
  std::vector<JobMemory> found;
  std::set<std::pair<dev_t, ino_t>> seen;
  std::error_code error;
  const auto ours = fs::read_symlink("/proc/self/ns/pid", error);
  for (const auto& process : fs::directory_iterator("/proc", error)) {
    const auto pid = process.path().filename().string();
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    std::error_code closed;
    const bool other_namespace =
        fs::read_symlink(process.path() / "ns/pid", closed) != ours && !closed;
    for (const auto& entry : fs::directory_iterator(process.path() / "fd", closed)) {
      const auto target = fs::read_symlink(entry.path(), closed).string();
      if (!target.starts_with("/memfd:horo-timeline")) continue;
      UniqueFd fd(open(entry.path().c_str(), O_RDONLY | O_CLOEXEC));

      struct stat status {};

      if (!fd || fstat(fd.value(), &status) != 0) continue;
      if (!seen.emplace(status.st_dev, status.st_ino).second) continue;
      // Any program can use that name. Only sealed memory, which cannot shrink, is safe to read.
      const int regions = timeline::count_regions(fd.value());
      if (regions == 0) continue;
      auto job = job_of(fd.value(), regions);
      if (!job.empty()) {
        found.push_back({.fd = std::move(fd),
                         .regions = regions,
                         .job = std::move(job),
                         .in_other_pid_namespace = other_namespace});
      }
    }
  }
  return found;
}

}  // namespace

Result<FoundJob> find_job(const std::string& job) {
  auto memories = all_memories();
  auto launchers = running_launchers();
  const bool root = geteuid() == 0;
  std::set<std::string> all;
  std::set<std::string> meant;
  const auto take = [&](const std::string& id) {
    all.insert(id);
    if (id.starts_with(job)) meant.insert(id);
  };
  for (const auto& memory : memories) take(memory.job);
  for (const auto& launcher : launchers) {
    // A job of another user must be named.
    if (launcher.user == geteuid() || (!job.empty() && (root || launcher.job.starts_with(job))))
      take(launcher.job);
  }
  if (meant.contains(job)) meant = {job};
  if (meant.empty()) {
    const auto others =
        all.empty() ? "" : fmt::format("; these jobs run here: {}", fmt::join(all, ", "));
    if (job.empty())
      return fail(Errc::not_found, "no job of this user with a timeline runs on this host");
    return fail(Errc::not_found, "no process of job '{}' with a timeline runs on this host{}", job,
                others);
  }
  if (meant.size() > 1) {
    return fail(Errc::invalid_argument, "several jobs run on this host; name one of {}",
                fmt::join(meant, ", "));
  }
  FoundJob found{.id = *meant.begin(), .memories = {}, .launcher = {}};
  std::erase_if(memories, [&](const JobMemory& memory) { return memory.job != found.id; });
  found.memories = std::move(memories);
  for (auto& launcher : launchers) {
    const bool ours = launcher.user == geteuid();
    if (launcher.job == found.id && (ours || !found.launcher)) found.launcher = std::move(launcher);
  }
  return found;
}

std::string launcher_address(int pid) {
  std::ifstream file(fmt::format("/proc/{}/environ", pid), std::ios::binary);
  constexpr std::string_view kRendezvous = "HORO_RENDEZVOUS=";
  bool agent = false;
  std::string address;
  for (std::string entry; std::getline(file, entry, '\0');) {
    agent = agent || entry.starts_with("HORO_AGENT_PID=");
    if (entry.starts_with(kRendezvous))
      address = entry.substr(kRendezvous.size(), entry.rfind(':') - kRendezvous.size());
  }
  return agent ? address : "";
}

}  // namespace horo::apps
