// SPDX-License-Identifier: Apache-2.0
#include "apps/timeline_view/memories.hpp"

#include <algorithm>
#include <fcntl.h>
#include <filesystem>
#include <set>
#include <sys/stat.h>

#include <fmt/ranges.h>

#include "timeline/region.hpp"

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

/// Each memory once, whose ranks have begun to record.
std::vector<JobMemory> all_memories() {
  std::vector<JobMemory> found;
  std::set<std::pair<dev_t, ino_t>> seen;
  std::error_code error;
  for (const auto& process : fs::directory_iterator("/proc", error)) {
    const auto pid = process.path().filename().string();
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    std::error_code closed;
    for (const auto& entry : fs::directory_iterator(process.path() / "fd", closed)) {
      const auto target = fs::read_symlink(entry.path(), closed).string();
      if (!target.starts_with("/memfd:horo-timeline")) continue;
      UniqueFd fd(open(entry.path().c_str(), O_RDONLY | O_CLOEXEC));

      struct stat status {};

      if (!fd || fstat(fd.value(), &status) != 0) continue;
      if (!seen.emplace(status.st_dev, status.st_ino).second) continue;
      const auto regions =
          static_cast<int>(status.st_size / static_cast<off_t>(timeline::kRegionStride));
      auto job = job_of(fd.value(), regions);
      if (!job.empty()) found.push_back({std::move(fd), regions, std::move(job)});
    }
  }
  return found;
}

}  // namespace

Result<std::vector<JobMemory>> memories_of(const std::string& job) {
  auto memories = all_memories();
  std::set<std::string> all;
  std::set<std::string> meant;
  for (const auto& memory : memories) {
    all.insert(memory.job);
    if (memory.job.starts_with(job)) meant.insert(memory.job);
  }
  if (meant.contains(job)) meant = {job};
  if (meant.empty()) {
    const auto others = all.empty() ? "" : fmt::format("; there is {}", fmt::join(all, ", "));
    if (job.empty())
      return fail(Errc::not_found, "no job of this user that records runs on this host");
    return fail(Errc::not_found, "no process of job '{}' that records runs on this host{}", job,
                others);
  }
  if (meant.size() > 1) {
    return fail(Errc::invalid_argument, "several jobs run on this host; name one of {}",
                fmt::join(meant, ", "));
  }
  std::erase_if(memories, [&](const JobMemory& memory) { return memory.job != *meant.begin(); });
  return memories;
}

}  // namespace horo::apps
