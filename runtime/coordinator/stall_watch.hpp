// SPDX-License-Identifier: Apache-2.0
// Finds tensors that do not complete, and says why. There is no thread and no timer for it: ranks
// that sleep do so until the set's next look is due, and the first to wake takes the look for all.
// Nothing is due while nothing is pending.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/strong.hpp"
#include "runtime/coordinator/process_sets.hpp"
#include "runtime/coordinator/stall.hpp"
#include "runtime/coordinator/tree/host_log.hpp"

namespace horo::runtime {

/// What a look found.
struct StallFindings {
  std::vector<std::string> lines;         ///< Warnings, each new.
  std::string end;                        ///< Why the job has to end now; empty: it has not.
  Rank culprit{-1};                       ///< By whom.
  std::vector<tree::Question> questions;  ///< For the other hosts of a set; they have the answer.
};

/// In a set with members on other hosts the leader looks, and all hosts are asked: the root has
/// the last word.
class StallWatch final : public tree::Examiner {
 public:
  using ReadState = std::function<ProcessState(std::uint32_t pid)>;

  StallWatch(HostMemory& host, const ProcessSets& sets, const StallTimes& times,
             ReadState read_state = process_state);

  /// This rank speaks for its host. Before the first set of several hosts.
  void lead(std::string host_name) {
    leads_ = true;
    host_name_ = std::move(host_name);
  }

  bool on() const { return times_.warning > Duration::zero(); }

  /// Something of the set is pending from now on. True when nothing was: the next look has only now
  /// got a time, and some thread of who looks has to sleep no longer than that. Thread: any.
  /// Blocks: no.
  bool arm(Board& board, TimePoint now);

  /// Until a look of any set is due; Duration::max() when none is. Thread: any.
  Duration until_due(TimePoint now) const;

  /// Looks at the sets whose look is due, unless other ranks do. Thread: the token's holder.
  StallFindings look(TimePoint now);

  /// Ends all operations of all ranks of the host for the reason found. Thread: any.
  void end_job(const StallFindings& findings);

  // Thread: any.

  std::optional<tree::Answer> examine(const tree::Question& question) override;

  /// Says what the answer means, as say() is called next: whoever reads standard error may be slow,
  /// and the leader has heartbeats to send.
  std::optional<tree::Loss> conclude(const tree::Question& question,
                                     const tree::Answer& answer) override;

  /// Writes what conclude() had to say; until_due() is zero while there is something.
  void say();

 private:
  struct Found {
    std::vector<Stalled> overdue;
    std::vector<Stalled> too_long;
  };

  bool looks_at(const ProcessSet& set) const {
    return set.board != nullptr && (set.board->spans() ? leads_ : set.member());
  }

  void look_at(const ProcessSet& set, TimePoint now, StallFindings& findings);
  void judge(const ProcessSet& set, Found&& found, TimePoint now, StallFindings& findings) const;
  void ask(SetId set, std::vector<Stalled>&& tensors, bool ends, StallFindings& findings) const;
  StallFacts gather(const ProcessSet& set, TimePoint now) const;
  tree::Answer examine_in(const ProcessSet& set, const tree::Question& question,
                          TimePoint now) const;
  /// Who of this host keeps an entry that is under way.
  tree::Lacking held_up(Board& board, TimePoint now) const;
  std::string end_text(const StallFacts& facts) const;
  bool helpless(const Board& board, int member) const;
  void say_later(log::Level level, std::string line);
  bool anybody_waits(const Board& board) const;
  std::string tensor_waited_for(const ProcessSet& set, std::uint64_t word, SetId& in) const;

  HostMemory& host_;
  const ProcessSets& sets_;
  const StallTimes times_;
  const ReadState read_state_;
  bool leads_ = false;
  std::string host_name_;
  std::mutex unsaid_mutex_;
  std::vector<std::pair<log::Level, std::string>> unsaid_;  // HORO_GUARDED_BY(unsaid_mutex_)
  std::atomic<bool> has_unsaid_{false};
};

/// What the ranks of several hosts say, put together; `set` as users know it. Pure.
StallFacts facts_of(SetId set, const tree::Question& question, const tree::Answer& answer);

}  // namespace horo::runtime
