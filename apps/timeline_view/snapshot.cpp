// SPDX-License-Identifier: Apache-2.0
#include "apps/timeline_view/snapshot.hpp"

#include "apps/common/running_job/find_job.hpp"
#include "apps/common/running_job/whole_job.hpp"
#include "base/log.hpp"
#include "timeline/record/save_timelines.hpp"

namespace horo::apps {

namespace {

Result<std::string> save_all_hosts(WholeJob& job, const std::string& id) {
  HORO_TRY(auto folder, timeline::job_directory(id));
  HORO_TRY(const auto saved, job.save(folder));
  for (const auto& problem : saved.problems)
    log::warn("timeline-view", "ranks are missing: {}", problem);
  if (saved.ranks != 0) return folder;
  return fail(Errc::not_found, "job '{}' has recorded nothing", id);
}

Result<std::string> save_here(const FoundJob& found) {
  std::string folder;
  for (const auto& memory : found.memories) {
    HORO_TRY(auto saved, timeline::save_regions(memory.fd.value(), memory.regions, folder));
    if (saved.ranks != 0) folder = std::move(saved.directory);
  }
  if (!folder.empty()) return folder;
  return fail(Errc::not_found, "job '{}' has recorded nothing on this host", found.id);
}

}  // namespace

Result<std::string> save_running(const std::string& job) {
  HORO_TRY(const auto found, find_job(job));
  if (found.launcher) {
    auto whole = WholeJob::attach(*found.launcher);
    if (whole) return save_all_hosts(**whole, found.id);
    if (found.memories.empty()) return Failure(std::move(whole).error());
    log::warn("timeline-view", "only the ranks of this host are saved: {}", whole.error().message);
  }
  return save_here(found);
}

}  // namespace horo::apps
