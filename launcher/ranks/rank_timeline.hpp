// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/loop/loop.hpp"
#include "base/unique_fd.hpp"
#include "launcher/ranks/rank_descriptors.hpp"
#include "launcher/starter.hpp"

namespace horo::launcher {

/// The memory into which a host's ranks record. This keeps it open, so that it outlives them. Its
/// descriptor is its own: a thread may still read it when other ranks already record elsewhere.
/// Thread: immutable.
class RankTimeline {
 public:
  /// Also puts it at kTimelineDescriptor, until clear_rank_descriptors(). Null where the system has
  /// no memory for it: a job runs without it as well.
  static std::shared_ptr<const RankTimeline> make(const AgentSpec& spec);

  int descriptor() const { return fd_.value(); }

  int ranks() const { return ranks_; }

  /// Writes what the ranks have recorded to `directory`. Blocks: for the disk.
  SavedTimeline save(const std::string& directory) const;

 private:
  RankTimeline(UniqueFd fd, int ranks) : fd_(std::move(fd)), ranks_(ranks) {}

  UniqueFd fd_;
  int ranks_;
};

/// RankTimeline::save on a thread of its own: a disk may hang, and an agent without heartbeats
/// counts as lost. The thread is not joined; it ends with the process at the latest. Thread: the
/// loop's.
class TimelineSaving {
 public:
  using Answer = std::function<void(const SavedTimeline&)>;

  /// Calls `answer` once from the loop: with what was saved, or with a problem after `limit` or at
  /// give_up().
  TimelineSaving(Loop& loop, std::shared_ptr<const RankTimeline> timeline, std::string directory,
                 Duration limit, Answer answer);
  ~TimelineSaving();
  TimelineSaving(const TimelineSaving&) = delete;
  TimelineSaving& operator=(const TimelineSaving&) = delete;

  void give_up();

 private:
  class State;

  std::string where() const;
  void finish(const SavedTimeline& saved);

  const std::string directory_;
  Answer answer_;  ///< Empty once it was called.
  std::shared_ptr<State> state_;
  Subscription limit_;
};

}  // namespace horo::launcher
