// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/loop/loop.hpp"
#include "launcher/agent/rank_descriptors.hpp"
#include "launcher/process/unique_fd.hpp"
#include "launcher/starter.hpp"

namespace horo::launcher {

/// The memory into which a host's ranks record, held open so that it outlives them.
/// Thread: immutable.
class RankTimeline {
 public:
  /// Null where the system has no room for it: a job runs without as well.
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

/// RankTimeline::save on a thread of its own: the launcher takes an agent that says nothing for a
/// lost one, and a disk may hang. Nobody waits for the thread, which ends with the process at the
/// latest. Thread: the loop's.
class TimelineSaving {
 public:
  using Answer = std::function<void(const SavedTimeline&)>;

  /// `answer` runs once, from the loop: with what was saved, or with the problem that it was not
  /// after `limit` or at give_up().
  TimelineSaving(Loop& loop, std::shared_ptr<const RankTimeline> timeline, std::string directory,
                 Duration limit, Answer answer);
  ~TimelineSaving();
  TimelineSaving(const TimelineSaving&) = delete;
  TimelineSaving& operator=(const TimelineSaving&) = delete;

  void give_up();

 private:
  class State;

  std::string where() const;
  void settle(const SavedTimeline& saved);

  const std::string directory_;
  Answer answer_;  ///< Empty: given.
  std::shared_ptr<State> state_;
  Subscription limit_;
};

}  // namespace horo::launcher
