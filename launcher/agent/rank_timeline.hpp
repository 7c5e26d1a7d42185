// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "launcher/agent/rank_descriptors.hpp"
#include "launcher/process/unique_fd.hpp"
#include "launcher/starter.hpp"

namespace horo::launcher {

/// The memory into which a host's ranks record, held open so that it outlives them. Thread: owner.
class RankTimeline {
 public:
  /// Null where the system has no room for it: a job runs without as well.
  static std::unique_ptr<RankTimeline> make(const AgentSpec& spec);

  int descriptor() const { return fd_.value(); }

  /// Writes what the ranks have recorded to `directory`. Blocks: for the disk.
  SavedTimeline save(const std::string& directory) const;

 private:
  RankTimeline(UniqueFd fd, int ranks) : fd_(std::move(fd)), ranks_(ranks) {}

  UniqueFd fd_;
  int ranks_;
};

}  // namespace horo::launcher
