// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "base/clock.hpp"

namespace horo {

/// The time by which something must be done, or never. Replaces timeouts with special values.
class Deadline {
 public:
  static Deadline in(const Clock& clock, Duration d) { return Deadline(clock.now() + d); }

  static Deadline at(TimePoint when) { return Deadline(when); }

  static Deadline never() { return Deadline(TimePoint::max()); }

  bool is_never() const { return when_ == TimePoint::max(); }

  bool expired(TimePoint now) const { return now >= when_; }

  /// Time left, never negative; Duration::max() if there is no limit.
  Duration left(TimePoint now) const {
    return is_never() ? Duration::max() : std::max(Duration::zero(), Duration(when_ - now));
  }

  TimePoint when() const { return when_; }

 private:
  explicit Deadline(TimePoint when) : when_(when) {}

  TimePoint when_;
};

/// How long a call may block: until a time, or until another thread no longer wants the answer.
struct WaitLimit {
  /// Implicit, because a time alone is a limit, too.
  WaitLimit(Deadline until, int cancelled_by = -1) : deadline(until), cancel(cancelled_by) {}

  Deadline deadline;
  int cancel;  ///< The descriptor that becomes readable when the call is to end; -1: there is none.
};

/// Sleeps for so long, or until the limit's time. False: the wait is cancelled. Blocks.
bool pause_for(Duration pause, const WaitLimit& limit);

}  // namespace horo
