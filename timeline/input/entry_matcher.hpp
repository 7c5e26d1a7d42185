// SPDX-License-Identifier: Apache-2.0
// Converts the records of all ranks to operations: the records of one log entry on all ranks are
// matched by the entry's number.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "timeline/analysis/model.hpp"
#include "timeline/input/steps.hpp"
#include "timeline/record/rank_source.hpp"
#include "timeline/record/record.hpp"

namespace horo::timeline {

/// Thread: owner. Memory grows with tensors and with the entries that have not ended on all ranks.
class EntryMatcher {
 public:
  enum class Clocks { aligned, unknown };

  /// `files`: the number of ranks with records. With Clocks::unknown a host's clock is corrected as
  /// soon as it contradicts another host's.
  EntryMatcher(OperationSink& sink, std::size_t files, Clocks clocks = Clocks::unknown)
      : sink_(&sink), files_(files), clocks_(clocks) {}

  /// Sends all further findings to another sink.
  void set_sink(OperationSink& sink) { sink_ = &sink; }

  void take(const RankSource& file, const Record& record);
  /// Reports what is unfinished. All sources must still exist.
  void finish();

 private:
  struct Key {
    std::uint16_t set = 0;
    std::uint64_t entry = 0;

    auto operator<=>(const Key&) const = default;
  };

  struct RankPart {
    std::int64_t arrived = 0;  ///< When its last tensor was submitted; 0: unknown.
    std::int64_t begun = 0;
    std::int64_t moved = 0;  ///< When it had begun and all earlier entries had ended.
    std::int64_t ended = 0;
    std::int64_t packed_ns = 0;  ///< Copies to a fusion buffer, between begun and ended.
    std::int64_t unpacked_ns = 0;
    std::int64_t device_ns = 0;  ///< How long its device worked.
  };

  struct Pending {
    Begin what;
    std::vector<std::string> members;  ///< The first name, or all names if the sink wants them.
    int named_by = -1;                 ///< The rank that the names come from.
    int job_size = 0;
    std::map<int, RankPart> parts;
    std::size_t ended = 0;  ///< Number of parts that have ended.
  };

  struct RankState {
    const RankSource* file = nullptr;
    std::string host;
    std::int64_t offset = 0;          ///< Correction of the host's clock.
    std::int64_t first = 0;           ///< When its records begin.
    std::int64_t last_submitted = 0;  ///< When it last submitted any tensor.
    /// Time of submission by set and tensor; 0: the tensor is not waiting for its entry.
    std::unordered_map<std::uint64_t, std::int64_t> submitted;
    Key last{};  ///< The entry whose members follow.
    std::int64_t last_end = 0;
    TuningChange tuning;
  };

  /// Process set and tensor name; tensor numbers differ between hosts.
  using WaitKey = std::pair<std::uint16_t, std::string>;

  struct Waits {
    std::map<WaitKey, std::map<int, std::int64_t>> since;  ///< The inner map is by rank.
    /// By set: ranks of which it is unknown what they have submitted, because they have joined or
    /// wait for a tensor whose name is lost.
    std::map<std::uint16_t, std::set<int>> unclear;
  };

  RankState& state_of(const RankSource& file);
  void submit(RankState& state, int rank, const Record& record, std::int64_t now);
  void begin(const RankSource& file, const Record& record, std::int64_t now);
  void add_members(const RankSource& file, const Record& record);
  void mismatch(const RankSource& file, const Record& record, std::int64_t now);
  void copied(const RankSource& file, const Record& record);
  void worked(const RankSource& file, const Record& record, std::int64_t now);
  static GenerationMark mark_of(const Record& record, std::int64_t now);
  void tuned(RankState& state, int rank, const Record& record, std::int64_t now);
  void end(const RankSource& file, const Record& record, std::int64_t now);
  bool whole(const Key& key, const Pending& pending) const;
  void align(const Pending& pending);
  void move_clock(const std::string& host, std::string_view other, std::int64_t by_ns);
  static void add_phases(const std::map<int, RankPart>& parts, ObservedOperation& operation);
  void emit(Pending& pending);
  void report_unfinished();
  Waits waits_at_the_end() const;
  std::optional<UnfinishedOperation> judge_wait(const WaitKey& key,
                                                const std::map<int, std::int64_t>& since,
                                                const std::set<int>& unclear) const;

  OperationSink* sink_;
  const std::size_t files_;
  const Clocks clocks_;
  std::map<int, RankState> ranks_;
  std::map<std::string, std::int64_t> offsets_;  ///< By host: the correction of its clock.
  std::map<std::uint16_t, std::set<int>> members_;
  std::map<Key, Pending> pending_;
  std::optional<std::int64_t> lost_;  ///< When the first rank reported that a rank was lost.
  int tuned_ = -1;                    ///< The rank whose changes of the tuning are reported.
  int stepper_ = -1;                  ///< The rank whose steps are counted.
  StepFinder steps_;
};

}  // namespace horo::timeline
