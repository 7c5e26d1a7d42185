// SPDX-License-Identifier: Apache-2.0
// Finds tensors that do not complete. There is no thread and no timer for it: ranks that sleep do
// so until the set's next check is due, and the first one to wake checks for all. Nothing is due
// while no tensor is pending.
#pragma once

#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/strong.hpp"
#include "runtime/sets/set_table.hpp"
#include "runtime/stalls/member_inspector.hpp"
#include "runtime/stalls/stall_report.hpp"
#include "runtime/tree/agreement/host_log.hpp"

namespace horo::runtime {

/// The results of a check.
struct StallFindings {
  std::vector<std::string> lines;  ///< Warnings, each new.
  std::string end;                 ///< Why the job has to end now; empty: it goes on.
  Rank culprit{-1};                ///< The rank that the job ends for; -1: none.
  std::vector<tree::StallQuestion>
      questions;  ///< For all hosts of a set; the root reports the answers.
};

/// Owns the times at which the sets of this rank are checked, which its host's ranks share. In a
/// set with members on other hosts the leader checks, and asks all hosts.
class StallWatch {
 public:
  /// `host` and `sets` outlive this.
  StallWatch(HostMemory& host, const SetTable& sets, const StallTimes& times,
             MemberInspector::ReadState read_state = process_state);

  /// This rank checks sets with members on other hosts. Before the first such set.
  void lead() { leads_ = true; }

  bool on() const { return times_.warning > Duration::zero(); }

  const StallTimes& times() const { return times_; }

  const MemberInspector& inspector() const { return inspector_; }

  /// A tensor of the set is pending from now on. True when none was: the set's next check has only
  /// now got a time, and a thread of the rank that checks must not sleep longer. Thread: any.
  /// Blocks: no.
  bool arm(Board& board, TimePoint now);

  /// Until the check of any set is due; Duration::max() when none is. Thread: any.
  Duration until_due(TimePoint now) const;

  /// Checks the sets that are due, unless another rank does. Thread: the token's holder.
  StallFindings look(TimePoint now);

  /// Ends all operations of all ranks of the host for the reason found. Thread: any.
  void end_job(const StallFindings& findings);

 private:
  class Check;

  /// Tensors that have newly passed a limit.
  struct Found {
    std::vector<Stalled> overdue;   ///< The warning time.
    std::vector<Stalled> too_long;  ///< The shutdown time.
  };

  bool checks(const ProcessSet& set) const {
    return set.board != nullptr && (set.board->leader_port() != nullptr ? leads_ : set.member());
  }

  void check(const ProcessSet& set, TimePoint now, StallFindings& findings);
  bool claim_check(StallSchedule& schedule, TimePoint now) const;
  void find_pending(Board& board, const std::vector<Unfinished>& pending, Check& check,
                    Found& found) const;
  void find_stuck(Board& board, const UnderWay& way, Check& check, Found& found) const;
  void report(const ProcessSet& set, Found&& found, TimePoint now, StallFindings& findings) const;

  HostMemory& host_;
  const SetTable& sets_;
  const StallTimes times_;
  const MemberInspector inspector_;
  bool leads_ = false;
};

/// "stalled for longer than ...": the reason that a job ends with.
std::string stall_end_text(const StallFacts& facts, const StallTimes& times);

}  // namespace horo::runtime
