// SPDX-License-Identifier: Apache-2.0
// When the waits of a rank's start end.
//
// A rank that waits in vain fails, and users read the first failure. It must come from a rank that
// waits for the missing one itself, so a rank that waits for such a rank needs more patience. All
// waits therefore end by one clock, which starts when the ranks of all hosts have met, and each
// stage of the start ends a step later than the stage before.
#pragma once

#include "base/deadline.hpp"

namespace horo::runtime {

/// Thread: owner.
class StartClock {
 public:
  /// Ranks need not come out of the meeting, or wake up, at exactly one time.
  static constexpr Duration kStep = std::chrono::seconds(1);

  /// `clock` outlives this.
  StartClock(const Clock& clock, Duration timeout)
      : clock_(clock), timeout_(timeout), end_(Deadline::in(clock, timeout)) {}

  /// The ranks of a host wait for each other.
  Deadline local_ranks() const { return end_; }

  /// The leaders of hosts wait for each other. A leader comes once its host's ranks are there.
  Deadline leaders() const { return later(1); }

  /// Ranks wait for each other across hosts. A leader comes once its neighbours are there.
  Deadline ranks() const { return later(2); }

  /// The whole job was stopped: the time begins again.
  void restart() { end_ = Deadline::in(clock_, timeout_); }

 private:
  Deadline later(int steps) const { return Deadline::at(end_.when() + steps * kStep); }

  const Clock& clock_;
  const Duration timeout_;
  Deadline end_;
};

}  // namespace horo::runtime
