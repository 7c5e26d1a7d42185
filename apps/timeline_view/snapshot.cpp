// SPDX-License-Identifier: Apache-2.0
#include "apps/timeline_view/snapshot.hpp"

#include <fcntl.h>
#include <filesystem>
#include <set>
#include <sys/stat.h>

#include "base/unique_fd.hpp"
#include "timeline/save.hpp"

namespace horo::apps {

namespace {

namespace fs = std::filesystem;

/// Calls `use` once with each memory of that kind that a process of this user holds.
template <typename Use>
void for_memories(const Use& use) {
  std::set<std::pair<dev_t, ino_t>> seen;
  std::error_code error;
  for (const auto& process : fs::directory_iterator("/proc", error)) {
    const auto pid = process.path().filename().string();
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    std::error_code closed;
    for (const auto& entry : fs::directory_iterator(process.path() / "fd", closed)) {
      const auto target = fs::read_symlink(entry.path(), closed).string();
      if (!target.starts_with("/memfd:horo-timeline")) continue;
      const UniqueFd fd(open(entry.path().c_str(), O_RDONLY | O_CLOEXEC));

      struct stat status {};

      if (!fd || fstat(fd.value(), &status) != 0) continue;
      if (!seen.emplace(status.st_dev, status.st_ino).second) continue;
      use(fd.value(),
          static_cast<int>(status.st_size / static_cast<off_t>(timeline::kRegionStride)));
    }
  }
}

std::string job_of(int fd, int regions) {
  for (int i = 0; i < regions; ++i) {
    if (const auto reader = timeline::RegionReader::open(fd, i))
      return reader->about().identity.job_text();
  }
  return {};
}

}  // namespace

Result<std::string> save_running(const std::string& job) {
  std::string folder;
  std::string others;
  Status problem;
  for_memories([&](int fd, int regions) {
    const auto id = job_of(fd, regions);
    if (id.empty()) return;
    if (!id.starts_with(job)) {
      others += fmt::format("{}{}", others.empty() ? "" : ", ", id);
      return;
    }
    auto saved = timeline::save_regions(fd, regions, folder);
    if (!saved) {
      problem = Failure(std::move(saved).error());
    } else if (saved->ranks != 0) {
      folder = saved->directory;
    }
  });
  if (!problem) return Failure(Error(problem.error()));
  if (!folder.empty()) return folder;
  return fail(Errc::not_found, "no process of job '{}' that records runs on this host{}", job,
              others.empty() ? "" : fmt::format("; there is {}", others));
}

}  // namespace horo::apps
