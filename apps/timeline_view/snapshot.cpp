// SPDX-License-Identifier: Apache-2.0
#include "apps/timeline_view/snapshot.hpp"

#include "apps/timeline_view/memories.hpp"
#include "timeline/save.hpp"

namespace horo::apps {

Result<std::string> save_running(const std::string& job) {
  HORO_TRY(const auto memories, memories_of(job));
  std::string folder;
  for (const auto& memory : memories) {
    HORO_TRY(auto saved, timeline::save_regions(memory.fd.value(), memory.regions, folder));
    if (saved.ranks != 0) folder = std::move(saved.directory);
  }
  if (!folder.empty()) return folder;
  return fail(Errc::not_found, "job '{}' has recorded nothing on this host", memories.front().job);
}

}  // namespace horo::apps
