// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/rank_timeline.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <utility>

#include "base/log.hpp"
#include "timeline/save.hpp"

namespace horo::launcher {

std::unique_ptr<RankTimeline> RankTimeline::make(const AgentSpec& spec) {
  const auto ranks = static_cast<int>(spec.ranks.size());
  const auto made = timeline::make_regions(ranks);
  if (!made) {
    log::debug("agent", "no timeline on host '{}': {}", spec.host, made.error().message);
    return nullptr;
  }
  UniqueFd fd(dup3(made->value(), kTimelineDescriptor, O_CLOEXEC));
  if (!fd) return nullptr;  // The limit of descriptors is below it.
  return std::unique_ptr<RankTimeline>(new RankTimeline(std::move(fd), ranks));
}

SavedTimeline RankTimeline::save(const std::string& directory) const {
  auto saved = timeline::save_regions(fd_.value(), ranks_, directory);
  if (!saved) return {.directory = directory, .problem = std::move(saved).error().message};
  return {.ranks = saved->ranks,
          .directory = std::move(saved->directory),
          .problem = std::move(saved->problem)};
}

}  // namespace horo::launcher
