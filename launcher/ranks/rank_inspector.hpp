// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "base/loop/loop.hpp"
#include "launcher/questions.hpp"
#include "launcher/ranks/rank_timeline.hpp"

namespace horo::launcher {

/// Answers questions about what this host's ranks record. It works on a thread of its own with low
/// priority, so that neither the agent nor the ranks wait for it. Without questions there is no
/// thread. Thread: the loop's.
class RankInspector {
 public:
  /// Called from the loop. The bytes of a Piece are valid until it returns.
  using Tell = std::function<void(const Answer&)>;

  RankInspector(Loop& loop, std::shared_ptr<const RankTimeline> timeline, Tell tell);
  ~RankInspector();
  RankInspector(const RankInspector&) = delete;
  RankInspector& operator=(const RankInspector&) = delete;

  /// Questions are answered in order. A question is dropped when several others wait.
  void ask(const Question& question);

 private:
  class State;

  std::shared_ptr<State> state_;
};

/// Cuts a row to the limits of an answer.
void bound(timeline::LiveRow& row);
void bound(timeline::LiveGpu& gpu);

}  // namespace horo::launcher
