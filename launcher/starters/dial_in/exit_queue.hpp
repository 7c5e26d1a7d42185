// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "base/clock.hpp"
#include "base/loop/loop.hpp"
#include "launcher/starter.hpp"

namespace horo::launcher {

/// Puts exits of ranks into the order in which they happened. Each rank's agent has a connection of
/// its own, so the exit of a rank that failed because of another may arrive first. A failure
/// therefore waits 50 ms for others. Thread: the loop's.
class ExitQueue {
 public:
  using Report = std::function<void(const RankExit&)>;

  ExitQueue(Loop& loop, Report report) : loop_(loop), report_(std::move(report)) {}

  /// `at`: when the rank ended. An exit without failure is reported at once, with all that wait.
  void add(const RankExit& exit, TimePoint at);

  /// Reports everything that waits.
  void flush();

 private:
  struct Entry {
    RankExit exit;
    TimePoint at{};
  };

  Loop& loop_;
  const Report report_;
  std::vector<Entry> waiting_;
  Subscription timer_;
};

}  // namespace horo::launcher
