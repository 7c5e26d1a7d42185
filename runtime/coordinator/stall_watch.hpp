// SPDX-License-Identifier: Apache-2.0
// Finds tensors that do not complete, and says why. There is no thread and no timer for it: ranks
// that sleep do so until the set's next look is due, and the first to wake takes the look for all.
// Nothing is due while nothing is pending.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/strong.hpp"
#include "runtime/coordinator/process_sets.hpp"
#include "runtime/coordinator/stall.hpp"

namespace horo::runtime {

/// What a look found.
struct StallFindings {
  std::vector<std::string> lines;  ///< Warnings, each new.
  std::string end;                 ///< Why the job has to end now; empty: it has not.
  Rank culprit{-1};                ///< By whom.
};

class StallWatch {
 public:
  using ReadState = std::function<ProcessState(std::uint32_t pid)>;

  StallWatch(HostMemory& host, const ProcessSets& sets, const StallTimes& times,
             ReadState read_state = process_state);

  bool on() const { return times_.warning > Duration::zero(); }

  /// Something of the set is pending from now on. True when nothing was: the next look has only now
  /// got a time, and some thread has to sleep no longer than that. Thread: any. Blocks: no.
  bool arm(Board& board, TimePoint now);

  /// Until a look of any set is due; Duration::max() when none is. Thread: any.
  Duration until_due(TimePoint now) const;

  /// Looks at the sets whose look is due, unless other ranks do. Thread: the token's holder.
  StallFindings look(TimePoint now);

  /// Ends all operations of all ranks of the host for the reason found. Thread: any.
  void end_job(const StallFindings& findings);

 private:
  void look_at(ProcessSet& set, TimePoint now, StallFindings& findings);
  StallFacts gather(ProcessSet& set, TimePoint now) const;
  bool anybody_waits(const Board& board) const;
  std::string tensor_waited_for(const ProcessSet& set, std::uint64_t word, SetId& in) const;

  HostMemory& host_;
  const ProcessSets& sets_;
  const StallTimes times_;
  const ReadState read_state_;
};

}  // namespace horo::runtime
