// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/deadline.hpp"

namespace horo {

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
