// SPDX-License-Identifier: Apache-2.0
// Stall checks of one rank: what is due, and where it is reported.
#pragma once

#include <string>

#include "base/clock.hpp"
#include "runtime/sets/tree_link.hpp"
#include "runtime/stalls/host_stall_examiner.hpp"
#include "runtime/stalls/stall_watch.hpp"

namespace horo::runtime {

/// Checks the sets of this rank and writes what it finds to the log. Thread: the holder of the
/// progress token, except for what says otherwise.
class StallMonitor {
 public:
  /// All outlive this.
  StallMonitor(HostMemory& host, const SetTable& sets, const StallTimes& times)
      : watch_(host, sets, times), examiner_(host, sets, watch_) {}

  /// The job has other hosts. Before the first set; `tree` outlives this.
  void connect(TreeLink& tree, std::string host_name);

  /// As StallWatch::arm. Thread: any.
  bool arm(Board& board, TimePoint now) { return watch_.arm(board, now); }

  /// Until there is something to check or to write. Thread: any.
  Duration until_due(TimePoint now) const {
    return examiner_.has_pending() ? Duration::zero() : watch_.until_due(now);
  }

  /// Checks what is due and reports it; may end the job.
  void report_due(TimePoint now);

  /// Writes what the tree's thread has found.
  void write_pending() { examiner_.write_pending(); }

 private:
  StallWatch watch_;
  HostStallExaminer examiner_;
  TreeLink* tree_ = nullptr;  ///< Null: the job has one host.
};

}  // namespace horo::runtime
