// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "base/loop/loop.hpp"
#include "launcher/agent/rank_timeline.hpp"
#include "launcher/questions.hpp"

namespace horo::launcher {

/// Looks at what this host's ranks record, for those who ask, on a thread of its own that yields to
/// the ranks: the agent goes on meanwhile, and without questions there is no thread.
/// Thread: the loop's.
class Lookout {
 public:
  /// From the loop. A Piece's bytes are good until it returns.
  using Tell = std::function<void(const Answer&)>;

  Lookout(Loop& loop, std::shared_ptr<const RankTimeline> timeline, Tell tell);
  ~Lookout();
  Lookout(const Lookout&) = delete;
  Lookout& operator=(const Lookout&) = delete;

  /// Each question is answered, in their order; those beyond a few that wait are not.
  void ask(const Question& question);

 private:
  class State;

  std::shared_ptr<State> state_;
};

/// No more of a row than an answer may hold.
void bound(timeline::LiveRow& row);

}  // namespace horo::launcher
